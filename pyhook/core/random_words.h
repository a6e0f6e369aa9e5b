/* The words of a Mersenne Twister inside a _random.Random. */
#ifndef GD_RANDOM_WORDS_H
#define GD_RANDOM_WORDS_H

#include "pycompat.h"

/* Adds random_words and random_put to the module. 0, or -1 with an exception. */
int gd_random_words_init(PyObject *module);

#endif
