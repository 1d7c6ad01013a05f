// The one file that knows toml++ (https://marzer.github.io/tomlplusplus, TOML 1.0): parses a document and copies it into pn_toml.
//
// toml++ keeps tables sorted by key and counts columns in code points; here children are put back into file order and columns
// become bytes. Its recursive parser and destructors need the nesting limits below. A few wrong documents ("[=") break an assertion of
// toml++ 3.3, which its optimised build takes for a promise to the compiler: here it becomes an exception, and a syntax error.
#undef NDEBUG
namespace {
struct broken_assertion {};
[[noreturn]] void break_assertion() { throw broken_assertion(); }
} // namespace
#define TOML_ASSERT(expression) ((expression) ? void() : break_assertion())
#define TOML_HEADER_ONLY 1
#define TOML_EXCEPTIONS 0
#define TOML_ENABLE_FORMATTERS 0
#define TOML_MAX_NESTED_VALUES 32
#include <toml++/toml.h>

#include <algorithm>
#include <cstring>
#include <new>
#include <vector>

#include "core/memory.h"
#include "problem/toml_adapter.h"

namespace {

constexpr size_t maximum_key_parts = 16;

class source_lines {
  public:
    source_lines(const char *text, size_t length) : text_(text), length_(length), start_{0} {
        for (size_t i = 0; i < length; i++)
            if (text[i] == '\n') start_.push_back(i + 1);
    }

    // Byte offset of toml++'s line and code-point column.
    size_t offset(const toml::source_position &at) const {
        if (at.line == 0 || at.line > start_.size()) return length_;
        size_t byte = start_[at.line - 1];
        if (at.line == 1 && length_ >= 3 && std::memcmp(text_, "\xEF\xBB\xBF", 3) == 0) byte += 3; // the byte order mark is not counted
        for (size_t column = 1; column < at.column && byte < length_ && text_[byte] != '\n'; column++)
            do
                byte++;
            while (byte < length_ && (static_cast<unsigned char>(text_[byte]) & 0xc0) == 0x80);
        return byte;
    }

    size_t count() const { return start_.size(); }
    size_t end_of(size_t line) const { return line < start_.size() ? start_[line] : length_; } // line counted from 1

    pn_position position(size_t byte) const {
        const size_t line = static_cast<size_t>(std::upper_bound(start_.begin(), start_.end(), byte) - start_.begin());
        return {static_cast<unsigned>(line), static_cast<unsigned>(byte - start_[line - 1] + 1)};
    }

    pn_position position(const toml::source_position &at) const { return position(offset(at)); }

    // First byte inside the quotes of a string that begins at `at`; a newline right after """ or ''' is not part of it.
    pn_position inside_quotes(const toml::source_position &at) const {
        size_t byte = offset(at);
        const char quote = byte < length_ ? text_[byte] : 0;
        if (quote != '"' && quote != '\'') return position(byte);
        if (byte + 2 < length_ && text_[byte + 1] == quote && text_[byte + 2] == quote) {
            byte += 3;
            if (byte < length_ && text_[byte] == '\r') byte++;
            if (byte < length_ && text_[byte] == '\n') byte++;
        } else
            byte++;
        return position(byte);
    }

  private:
    const char *text_;
    size_t length_;
    std::vector<size_t> start_; // byte offset of each line
};

// Where more than maximum_key_parts names are joined by dots, or `length`. Strings are not told from keys: such a run of names
// inside one does not occur in practice, and refusing it harms nobody.
size_t deep_key(const char *text, size_t length) {
    size_t parts = 0, i = 0;
    bool after_dot = false;
    while (i < length) {
        const unsigned char c = static_cast<unsigned char>(text[i]);
        const size_t begin = i;
        if (std::isalnum(c) || c == '_' || c == '-' || c >= 0x80) {
            while (i < length && (std::isalnum(static_cast<unsigned char>(text[i])) || text[i] == '_' || text[i] == '-' ||
                                  static_cast<unsigned char>(text[i]) >= 0x80))
                i++;
        } else if (c == '"' || c == '\'') {
            i++;
            while (i < length && text[i] != static_cast<char>(c) && text[i] != '\n') i += text[i] == '\\' && i + 1 < length ? 2 : 1;
            if (i < length) i++;
        } else {
            if (c == '.')
                after_dot = true;
            else if (c != ' ' && c != '\t')
                parts = 0, after_dot = false;
            i++;
            continue;
        }
        parts = after_dot ? parts + 1 : 1;
        after_dot = false;
        if (parts > maximum_key_parts) return begin;
    }
    return length;
}

bool copy_node(const toml::node &node, const source_lines &lines, pn_toml_error *error, pn_toml *out);

bool copy_string(std::string_view string, pn_position at, pn_toml_error *error, char **out) {
    if (std::memchr(string.data(), 0, string.size()) != nullptr) {
        error->at = at;
        std::snprintf(error->message, sizeof error->message, "a string must not hold the character U+0000");
        return false;
    }
    *out = pn_duplicate(string.data(), string.size());
    if (!*out) throw std::bad_alloc();
    return true;
}

bool reserve_children(pn_toml *out, size_t count) {
    out->child = static_cast<pn_toml *>(pn_allocate(count, sizeof *out->child));
    if (!out->child) throw std::bad_alloc();
    return true;
}

bool copy_table(const toml::table &table, const source_lines &lines, pn_toml_error *error, pn_toml *out) {
    out->kind = PN_TOML_TABLE;
    reserve_children(out, table.size());
    for (auto &&[key, value] : table) {
        pn_toml *child = &out->child[out->count++];
        child->key_at = lines.position(key.source().begin);
        if (!copy_string(key.str(), child->key_at, error, &child->key) || !copy_node(value, lines, error, child)) return false;
    }
    std::sort(out->child, out->child + out->count, [](const pn_toml &a, const pn_toml &b) {
        return a.key_at.line != b.key_at.line ? a.key_at.line < b.key_at.line : a.key_at.column < b.key_at.column;
    });
    return true;
}

bool copy_node(const toml::node &node, const source_lines &lines, pn_toml_error *error, pn_toml *out) {
    out->at = lines.position(node.source().begin);
    switch (node.type()) {
        case toml::node_type::table:
            return copy_table(*node.as_table(), lines, error, out);
        case toml::node_type::array:
            out->kind = PN_TOML_ARRAY;
            reserve_children(out, node.as_array()->size());
            for (auto &&value : *node.as_array())
                if (!copy_node(value, lines, error, &out->child[out->count++])) return false;
            return true;
        case toml::node_type::string:
            out->kind = PN_TOML_STRING;
            out->at = lines.inside_quotes(node.source().begin);
            return copy_string(node.as_string()->get(), out->at, error, &out->string);
        case toml::node_type::integer:
            out->kind = PN_TOML_INTEGER;
            out->integer = node.as_integer()->get();
            out->number = static_cast<double>(out->integer);
            return true;
        case toml::node_type::floating_point:
            out->kind = PN_TOML_FLOAT;
            out->number = node.as_floating_point()->get();
            return true;
        case toml::node_type::boolean:
            out->kind = PN_TOML_BOOLEAN;
            out->boolean = node.as_boolean()->get();
            return true;
        default:
            out->kind = PN_TOML_DATE;
            return true;
    }
}

bool breaks_assertion(const char *text, size_t length) {
    try {
        const toml::parse_result result = toml::parse(std::string_view(text, length));
        return false;
    } catch (const broken_assertion &) {
        return true;
    }
}

// The line at which the parser breaks: it stops at the first error, so the shortest text of whole lines that breaks it ends there.
pn_position broken_line(const char *text, size_t length, const source_lines &lines) {
    size_t good = 0, bad = lines.count();
    while (bad - good > 1) {
        const size_t middle = (good + bad) / 2;
        (breaks_assertion(text, std::min(lines.end_of(middle), length)) ? bad : good) = middle;
    }
    return {static_cast<unsigned>(bad), 0};
}

// Parses and copies; false with `error` filled for a syntax error.
bool read_document(const char *text, size_t length, const source_lines &lines, pn_toml_error *error, pn_toml *root) {
    try {
        const toml::parse_result result = toml::parse(std::string_view(text, length));
        if (result) return copy_table(result.table(), lines, error, root);
        const std::string_view what = result.error().description();
        error->at = lines.position(result.error().source().begin);
        std::snprintf(error->message, sizeof error->message, "%.*s", static_cast<int>(what.size()), what.data());
    } catch (const broken_assertion &) {
        error->at = broken_line(text, length, lines);
        std::snprintf(error->message, sizeof error->message, "this is not TOML");
    }
    return false;
}

} // namespace

extern "C" pinn_status pn_toml_parse(const char *text, size_t length, pn_toml_error *error, pn_toml **out) {
    pn_toml *root = nullptr;
    try {
        const source_lines lines(text, length);
        const size_t deep = deep_key(text, length);
        if (deep < length) {
            error->at = lines.position(deep);
            std::snprintf(error->message, sizeof error->message, "a key of more than %zu names joined by dots", maximum_key_parts);
            return PINN_CONFIG;
        }
        root = static_cast<pn_toml *>(pn_allocate(1, sizeof *root));
        if (!root) return PN_NO_MEMORY("a TOML document");
        if (!read_document(text, length, lines, error, root)) {
            pn_toml_destroy(root);
            return PINN_CONFIG;
        }
    } catch (const std::bad_alloc &) {
        pn_toml_destroy(root);
        return PN_NO_MEMORY("a TOML document");
    }
    *out = root;
    return PINN_OK;
}
