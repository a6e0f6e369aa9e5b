package cli

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"
)

// newDoctor returns `godynamo doctor`.
func newDoctor(app *App) *cobra.Command {
	var out string
	var plain bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation: versions, tensor layout, hook, fork, speed of a hit",
		Long: `Checks each part of the installation and says what to do about each problem. The exit code is 1 if there
is one. CPython runs inside the Go library for these checks, or separately with --plain.`,
		RunE: func(cmd *cobra.Command, rest []string) error {
			// The value of --json is optional, so in `--json FILE`, FILE is an argument.
			if out == "-" && len(rest) == 1 {
				out, rest = rest[0], nil
			}
			if len(rest) > 0 {
				return Problemf("doctor takes no arguments, only flags, not %s", rest[0])
			}
			p, err := app.Python()
			if err != nil {
				return err
			}
			if err := p.check(); errors.As(err, new(noTorch)) {
				fmt.Fprintf(app.Stderr, "godynamo: %v\n", err)
				return ExitCode(1) // exit code 1 means a finding, not a usage error
			}
			args := []string{"doctor"}
			if cmd.Flags().Changed("json") {
				args = append(args, "--json="+out)
			}
			if plain {
				return p.Exec(args...)
			}
			return app.Embed(p, args...)
		},
	}
	cmd.Flags().StringVar(&out, "json", "",
		"write the findings as JSON to this file, or to stdout instead of the table")
	cmd.Flags().Lookup("json").NoOptDefVal = "-"
	cmd.Flags().BoolVar(&plain, "plain", false, "in a separate Python process")
	return cmd
}
