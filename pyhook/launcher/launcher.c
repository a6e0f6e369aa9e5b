/* godynamo-embed: starts CPython and godynamo's Go library in one process, for `godynamo dis` and
 * `godynamo doctor`.
 *
 *     godynamo-embed LIBPYTHON LIBGODYNAMO PYTHON ARGUMENTS...
 *
 * libpython is found at run time. It is opened first, and its symbols are global: the Go library takes
 * Python's symbols from its process, as in a plain Python. A separate Go program would need these symbols when
 * it is linked (data symbols are bound at start), and would bring a second Go runtime besides the library's
 * runtime.
 *
 * The exit code is Python's exit code, or 127 with the reason in one line if a library cannot be opened.
 */
#include <dlfcn.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

typedef int (*embed_fn)(int argc, char **argv);

/* Sets the locale in which arguments are decoded before Python starts. It is the user's locale, or UTF-8
 * if that locale is C, as in Python. */
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
        /* Never closed: neither runtime can be unloaded. The Go library's path must be the one by which _C opens it. */
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
