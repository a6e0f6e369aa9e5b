/* Full garbage collections wait while a function is translated.
 *
 * CPython starts a full collection when the objects that have survived since the last full collection are a quarter
 * of all older objects. A translation makes many objects, and after `import torch` a full collection examines
 * several hundred thousand: in the first call of 24 TransformerEncoderLayers, one collection took 300 of 438 ms.
 * The two younger generations are collected as usual, so garbage of the translation is freed at once. The wait ends
 * with the translation, or earlier if the number of objects in the process doubles.
 */
#ifndef GD_FULL_COLLECTIONS_H
#define GD_FULL_COLLECTIONS_H

#include "pycompat.h"

/* Makes full collections wait until the matching gd_release_full_collections. Calls nest and may come from several
 * threads. The caller holds the GIL. */
void gd_hold_full_collections(PyThreadState *tstate);

/* Ends the wait if no other translation needs it. A full collection that is due runs at CPython's next check. */
void gd_release_full_collections(void);

/* Ends, in a forked child, the waits of threads that the child does not have. May run without the GIL. holds: the
 * number of this thread's calls of gd_hold_full_collections that are not yet matched. */
void gd_full_collections_forked(int holds);

#endif
