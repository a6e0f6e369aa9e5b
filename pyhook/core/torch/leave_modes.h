/* Leaving torch's dispatch modes after an interruption. */
#ifndef GD_LEAVE_MODES_H
#define GD_LEAVE_MODES_H

/* Leaves the dispatch modes of torch that are still entered after a translation, or where an exception from outside has
 * ended transformed code: torch's own code was ended between the entry of a mode and the block that leaves it, or had
 * no memory to leave it. Neither begins under one. The pending exception stays. */
void gd_leave_modes(void);

#endif
