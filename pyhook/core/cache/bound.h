/* A bound on the memory of the process's entries (config.memory_mib). */
#ifndef GD_BOUND_H
#define GD_BOUND_H

#include "guards/guarded_code.h"

/* Returns about how many bytes an entry takes: its guard program, its code and its tables, without what a backend has
 * compiled. Objects that several entries share are counted for each. */
size_t gd_entry_bytes(gd_GuardedCode *entry);

/* Drops entries until all of them take no more memory than the setting allows. `latest`, the entry that has just been
 * added, stays. Those with the fewest calls since the last check go first, and of these the oldest. This runs
 * destructors, so the caller must hold its cache. Raises nothing; without memory for the list, nothing is dropped. */
void gd_bound_apply(gd_GuardedCode *latest);

#endif
