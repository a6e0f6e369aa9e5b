package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/godynamo/godynamo/cache/disk"
)

// newCache returns `godynamo cache` with its commands.
func newCache(app *App) *cobra.Command {
	c := &cacheCommand{app: app}
	cmd := &cobra.Command{
		Use:   "cache COMMAND",
		Short: "List, check, clear and copy the translations on disk",
		Long: `Shows and changes the folder in which processes share translations. A program may use the folder at the
same time: a translation that disappears is made again.`,
		Example: `  godynamo cache list
  godynamo cache why Model.forward
  godynamo cache export --function step step.gdx
  godynamo cache import --dir /fast/translations step.gdx`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return cmd.Help()
			}
			var names []string
			for _, sub := range cmd.Commands() {
				names = append(names, sub.Name())
			}
			return Problemf("unknown command %q for \"godynamo cache\"%s", args[0], suggested(Nearest(args[0], names)))
		},
	}
	cmd.PersistentFlags().StringVar(&c.dir, "dir", "", "the folder (default: $GODYNAMO_CACHE_DIR, "+
		"$XDG_CACHE_HOME/godynamo/translations, ~/.cache/godynamo/translations)")
	for _, sub := range []*cobra.Command{
		c.newClear(), c.newExport(), c.newImport(), c.newList(), c.newSize(), c.newVerify(), c.newWhy(),
	} {
		cmd.AddCommand(sub)
	}
	return cmd
}

// cacheCommand is one run of a command of `godynamo cache`.
type cacheCommand struct {
	app *App
	dir string
}

func (c *cacheCommand) newList() *cobra.Command {
	wide := false
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the translations, the most recently used first",
		Args:  noArguments,
		RunE: c.existing(func(s *disk.Store, _ []string) error {
			return writeTranslations(c.app.Stdout, s, wide)
		}),
	}
	cmd.Flags().BoolVarP(&wide, "wide", "w", false, "whole names and paths, however long")
	return cmd
}

func (c *cacheCommand) newSize() *cobra.Command {
	return &cobra.Command{
		Use:   "size",
		Short: "Print the number of translations and the size of the folder",
		Args:  noArguments,
		RunE: c.existing(func(s *disk.Store, _ []string) error {
			files, bytes := s.Size()
			_, err := fmt.Fprintf(c.app.Stdout, "%s, %s on disk in %s\n", translations(files), byteSize(bytes), s.Dir())
			return err
		}),
	}
}

func (c *cacheCommand) newVerify() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Read all translations and remove the bad ones; exit code 1 if there is one",
		Args:  noArguments,
		RunE: c.existing(func(s *disk.Store, _ []string) error {
			good, bad := s.Verify()
			for _, b := range bad {
				what := "it cannot be removed"
				if b.Removed {
					what = "it was removed"
				}
				fmt.Fprintf(c.app.Stdout, "%s; %s\n", printable(b.Err.Error()), what)
			}
			fmt.Fprintf(c.app.Stdout, "%s good, %d bad in %s\n", translations(good), len(bad), s.Dir())
			if len(bad) > 0 {
				return ExitCode(1)
			}
			return nil
		}),
	}
}

func (c *cacheCommand) newClear() *cobra.Command {
	return &cobra.Command{
		Use:   "clear",
		Short: "Remove all translations and the record of misses",
		Args:  noArguments,
		RunE: c.existing(func(s *disk.Store, _ []string) error {
			files, bytes := s.Size()
			if err := s.Clear(); err != nil {
				return Problemf("%v", err)
			}
			_, err := fmt.Fprintf(c.app.Stdout, "removed %s, %s, from %s\n", translations(files), byteSize(bytes),
				s.Dir())
			return err
		}),
	}
}

func (c *cacheCommand) newExport() *cobra.Command {
	var functions []string
	cmd := &cobra.Command{
		Use:   "export FILE",
		Short: "Write translations to one file (-: stdout)",
		Args:  oneFile,
		RunE: c.existing(func(s *disk.Store, args []string) error {
			if err := allStored(s, functions); err != nil {
				return err
			}
			choose := func(l disk.Listed) bool {
				return len(functions) == 0 || slices.ContainsFunc(functions, func(name string) bool {
					return isFunction(l.Meta.Function, name)
				})
			}
			n := 0
			err := c.app.writeFile(args[0], func(w io.Writer) (err error) {
				n, err = s.Export(w, choose)
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(c.app.Stderr, "%s: %s\n", args[0], translations(n))
			return nil
		}),
	}
	cmd.Flags().StringArrayVarP(&functions, "function", "f", nil, "only translations of this function (repeatable)")
	return cmd
}

func (c *cacheCommand) newImport() *cobra.Command {
	return &cobra.Command{
		Use:   "import FILE",
		Short: "Add the translations of a file that export wrote (-: stdin)",
		Args:  oneFile,
		RunE: func(_ *cobra.Command, args []string) error {
			dir, err := c.folder()
			if err != nil {
				return err
			}
			in := c.app.Stdin
			if args[0] != "-" {
				file, err := os.Open(args[0])
				if err != nil {
					return Problemf("%v", err)
				}
				defer file.Close()
				in = file
			}
			s, err := disk.Open(dir, 0)
			if err != nil {
				return Problemf("%v", err)
			}
			n, err := s.Import(in)
			if err != nil {
				return Problemf("%s: %v (imported before: %s)", args[0], err, translations(n))
			}
			_, err = fmt.Fprintf(c.app.Stdout, "imported %s into %s\n", translations(n), s.Dir())
			return err
		},
	}
}

func (c *cacheCommand) newWhy() *cobra.Command {
	count := 0
	cmd := &cobra.Command{
		Use:   "why [FUNCTION]",
		Short: "Show the latest misses, and how the nearest stored translations differ",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 1 {
				return Problemf("cache why takes one function, not %q as well", args[1])
			}
			return nil
		},
		RunE: c.existing(func(s *disk.Store, args []string) error {
			if count < 1 {
				return Problemf("--count is at least 1")
			}
			return writeMisses(c.app.Stdout, s, args, count)
		}),
	}
	cmd.Flags().IntVarP(&count, "count", "n", 5, "number of misses")
	return cmd
}

// existing returns the function that runs a command on the folder, which it does not make. A folder that does not exist
// has no translations; if it was named on the command line, that is an error.
func (c *cacheCommand) existing(do func(s *disk.Store, args []string) error) func(*cobra.Command, []string) error {
	return func(_ *cobra.Command, args []string) error {
		dir, err := c.folder()
		if err != nil {
			return err
		}
		if _, err := os.Stat(dir); err != nil {
			var path *os.PathError
			switch {
			case errors.As(err, &path) && !os.IsNotExist(err):
				return Problemf("%s: %v", dir, path.Err)
			case c.dir != "":
				return Problemf("%s: no such folder", dir)
			}
			_, err := fmt.Fprintf(c.app.Stdout, "%s in %s\n", translations(0), dir)
			return err
		}
		s, err := disk.Open(dir, 0)
		if err != nil {
			return Problemf("%v", err)
		}
		return do(s, args)
	}
}

// folder returns the path of the folder.
func (c *cacheCommand) folder() (string, error) {
	if c.dir != "" {
		return c.dir, nil
	}
	if dir := os.Getenv("GODYNAMO_CACHE_DIR"); dir != "" && dir != "0" { // 0 switches storing off
		return dir, nil
	}
	base := os.Getenv("XDG_CACHE_HOME")
	if !filepath.IsAbs(base) { // the XDG specification: a relative path is ignored
		home, err := os.UserHomeDir()
		if err != nil {
			return "", Problemf("the folder of translations is unknown without $HOME: give --dir")
		}
		base = filepath.Join(home, ".cache")
	}
	return filepath.Join(base, "godynamo", "translations"), nil
}

func noArguments(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return Problemf("%s takes no arguments, only flags, not %s", strings.TrimPrefix(cmd.CommandPath(), "godynamo "),
			args[0])
	}
	return nil
}

func oneFile(cmd *cobra.Command, args []string) error {
	if len(args) != 1 {
		return Problemf("%s needs one file: %s", strings.TrimPrefix(cmd.CommandPath(), "godynamo "), cmd.UseLine())
	}
	return nil
}

// allStored returns an error for the first of some functions that has no translation.
func allStored(s *disk.Store, functions []string) error {
	if len(functions) == 0 {
		return nil
	}
	var known []string
	for _, l := range s.List() {
		known = append(known, l.Meta.Function)
	}
	slices.Sort(known)
	known = slices.Compact(known)
	for _, name := range functions {
		if !slices.ContainsFunc(known, func(k string) bool { return isFunction(k, name) }) {
			return Problemf("no translation of %s is stored%s", name, suggested(Nearest(name, known)))
		}
	}
	return nil
}

// isFunction reports whether name is a function's qualified name or the end of it.
func isFunction(qualified, name string) bool {
	return qualified == name || strings.HasSuffix(qualified, "."+name)
}
