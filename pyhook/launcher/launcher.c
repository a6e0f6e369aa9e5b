/* godynamo-embed: starts CPython inside of a process that is Go's, for `godynamo dis` and `godynamo doctor`.
 *
 *     godynamo-embed LIBPYTHON LIBGODYNAMO PYTHON ARGUMENTS...
 *
 * libpython is found at run time and opened first, for all to see: the Go library leaves Python's symbols to the
 * process it is in, as in a plain Python. A Go program of its own would need them when it is linked (its data symbols
 * are bound when it starts), and would bring a second Go runtime beside the library's.
 *
 * Exit code: Python's; 127 where a library cannot be opened, with the reason in one line.
 */
#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

typedef int (*embed_fn)(int argc, char **argv);

/* Arguments are decoded before Python has begun: in the user's locale, or where that is C in UTF-8, which Python takes
 * in its place. */
static void
take_locale(void)
{
    const char *name = setlocale(LC_CTYPE, "");
    if (name == NULL || strcmp(name, "C") == 0 || strcmp(name, "POSIX") == 0) {
        setlocale(LC_CTYPE, "C.UTF-8");
    }
}

int
main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "usage: godynamo-embed LIBPYTHON LIBGODYNAMO PYTHON ARGUMENTS...\n");
        return 127;
    }
    void *library = NULL;
    for (int i = 1; i <= 2; i++) {
        /* Never closed: neither runtime can be unloaded. The Go library by the very path that _C opens it by. */
        library = dlopen(argv[i], RTLD_NOW | (i == 1 ? RTLD_GLOBAL : RTLD_LOCAL));
        if (library == NULL) {
            fprintf(stderr, "godynamo: %s\n", dlerror());
            return 127;
        }
    }
    embed_fn embed = (embed_fn)dlsym(library, "gdEmbed");
    if (embed == NULL) {
        fprintf(stderr, "godynamo: %s has no gdEmbed\n", argv[2]);
        return 127;
    }
    take_locale();
    return embed(argc - 3, argv + 3);
}
