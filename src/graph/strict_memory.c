/* Regions: memory that opens and closes by mprotect, and the handler that tells who touched a closed one.
 *
 * A fault comes on the thread that made it, which never holds the lock here: code that holds it touches no region. So the handler
 * may wait for the lock, though POSIX does not list mutexes and mprotect among what a handler may use; garbage collectors do the
 * same.
 */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "graph/strict.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pn_region *regions;
static struct sigaction previous; /* what SIGSEGV did before */

static const int protections[] = {
    [PN_ACCESS_NONE] = PROT_NONE, [PN_ACCESS_READ] = PROT_READ, [PN_ACCESS_WRITE] = PROT_READ | PROT_WRITE};

/* With the lock held. It can only fail for want of kernel memory when a mapping is split: the access stays what it was. */
static bool set_access(pn_region *region, pn_access access) {
    if (region->access == access) return true;
    if (mprotect(region->address, region->bytes, protections[access]) != 0) return false;
    region->access = access;
    return true;
}

static pn_region *find(const unsigned char *address) {
    for (pn_region *region = regions; region; region = region->next)
        if (address >= region->address && address < region->address + region->bytes) return region;
    return NULL;
}

/* Lets a running node through. A region opens for reading first; a thread that faults at the same address again although it can be
 * read wanted to write. (Another thread may have faulted before it was opened: its first fault here does not count as a write.) */
static bool let_through(const unsigned char *address) {
    static _Thread_local const unsigned char *readable;
    bool good = false;
    pthread_mutex_lock(&lock);
    pn_region *region = find(address);
    if (region && atomic_load(&region->owner->in_node)) {
        good = true;
        if (region->access == PN_ACCESS_NONE) {
            region->was_read = true;
            good = set_access(region, PN_ACCESS_READ);
        } else if (region->access == PN_ACCESS_READ && readable == address) {
            region->was_written = true;
            good = set_access(region, PN_ACCESS_WRITE);
        }
        readable = address;
    }
    pthread_mutex_unlock(&lock);
    return good;
}

static void on_fault(int number, siginfo_t *information, void *machine) {
    const int kept = errno;
    if (!let_through(information->si_addr)) {
        if (previous.sa_flags & SA_SIGINFO)
            previous.sa_sigaction(number, information, machine);
        else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN)
            previous.sa_handler(number);
        else
            sigaction(number, &previous, NULL); /* the access is made again, and ends the program */
    }
    errno = kept;
}

static int install_failure;

static void install(void) {
    struct sigaction action = {.sa_sigaction = on_fault, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    if (sigaction(SIGSEGV, &action, &previous) != 0) install_failure = errno;
}

pinn_status pn_regions_initialise(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, install);
    return install_failure ? pn_fail(PINN_INTERNAL, "sigaction: %s", strerror(install_failure)) : PINN_OK;
}

pinn_status pn_region_create(pn_strict *owner, pinn_place place, size_t bytes, void **out) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    if (bytes > SIZE_MAX - 2 * page) return pn_fail(PINN_NO_MEMORY, "out of memory");
    const size_t whole = (bytes + page - 1) / page * page;
    pn_region *region = pn_allocate(1, sizeof *region);
    if (!region) return pn_fail(PINN_NO_MEMORY, "out of memory");
    void *memory = mmap(NULL, whole + page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    pn_access rest = place == PINN_DEVICE ? PN_ACCESS_NONE : PN_ACCESS_WRITE;
    *region = (pn_region){.owner = owner, .rest = rest, .address = memory, .used = bytes, .bytes = whole};
    bool good = memory != MAP_FAILED && set_access(region, PN_ACCESS_WRITE);
    if (good) memset(region->address + bytes, PN_POISON, whole - bytes);
    if (!good || !set_access(region, rest)) {
        if (memory != MAP_FAILED) munmap(memory, whole + page);
        pn_free(region);
        return pn_fail(PINN_NO_MEMORY, "out of memory");
    }
    pthread_mutex_lock(&lock);
    region->next = regions;
    regions = region;
    pthread_mutex_unlock(&lock);
    *out = memory;
    return PINN_OK;
}

void pn_region_destroy(void *address) {
    pthread_mutex_lock(&lock);
    pn_region **link = &regions;
    while ((*link)->address != address) link = &(*link)->next;
    pn_region *region = *link;
    *link = region->next;
    pthread_mutex_unlock(&lock);
    munmap(region->address, region->bytes + (size_t)sysconf(_SC_PAGESIZE));
    pn_free(region);
}

pn_region *pn_region_find(const void *address) {
    pthread_mutex_lock(&lock);
    pn_region *region = find(address);
    pthread_mutex_unlock(&lock);
    return region;
}

void pn_region_set(pn_region *region, pn_access access) {
    pthread_mutex_lock(&lock);
    set_access(region, access);
    pthread_mutex_unlock(&lock);
}

pn_access pn_region_take_trespass(pn_region *region) {
    pthread_mutex_lock(&lock);
    pn_access taken = region->was_written ? PN_ACCESS_WRITE : region->was_read ? PN_ACCESS_READ : PN_ACCESS_NONE;
    region->was_read = region->was_written = false;
    if (taken != PN_ACCESS_NONE) set_access(region, PN_ACCESS_NONE);
    pthread_mutex_unlock(&lock);
    return taken;
}
