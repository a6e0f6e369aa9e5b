/* Full garbage collections wait while a function is translated.
 *
 * CPython starts a full collection when the objects that survived since the last one are a quarter of all older ones. A
 * translation makes many objects, and after `import torch` a full collection looks at several hundred thousand: of the
 * first call of 24 TransformerEncoderLayers, 300 of 438 ms were one collection. The two younger generations are
 * collected as usual, so what a translation drops is freed at once. The wait ends with the translation, or earlier if
 * the objects of the process double.
 */
#ifndef GD_FULL_COLLECTIONS_H
#define GD_FULL_COLLECTIONS_H

#include "pycompat.h"

/* Full collections wait until the matching gd_release_full_collections. Calls nest and may come from several threads;
 * the GIL is held. */
void gd_hold_full_collections(PyThreadState *tstate);

/* Ends the wait if no other translation needs it. A full collection that is due runs at CPython's next check. */
void gd_release_full_collections(void);

/* In a forked child, perhaps without the GIL: forgets the holds of threads that the child does not have. holds: how
 * many the calling thread has. */
void gd_full_collections_forked(int holds);

#endif
