/* The state words of the Mersenne Twister in a _random.Random. */
#ifndef GD_RANDOM_WORDS_H
#define GD_RANDOM_WORDS_H

#include "pycompat.h"

/* Adds random_words and random_put to the module. Returns 0, or -1 with an exception set. */
int gd_random_words_init(PyObject *module);

#endif
