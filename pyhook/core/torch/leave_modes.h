/* Leaving torch's dispatch modes after an interruption. */
#ifndef GD_LEAVE_MODES_H
#define GD_LEAVE_MODES_H

/* Leaves torch's dispatch modes that are still active after a translation, or after an exception from
 * outside (raised by a signal or another thread) has ended transformed code. Translations and transformed
 * code do not begin inside a dispatch mode, so these modes are left over: torch's own code was interrupted
 * between entering a mode and the block that leaves it, or had no memory to leave it. The pending
 * exception is kept. */
void gd_leave_modes(void);

#endif
