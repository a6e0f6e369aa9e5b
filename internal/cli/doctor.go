package cli

import "github.com/spf13/cobra"

// newDoctor returns `godynamo doctor`.
func newDoctor(app *App) *cobra.Command {
	var out string
	var plain bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check the installation: versions, tensor layout, hook, fork, speed of a hit",
		Long: `Tries each part of the installation and says what to do where something is off. Exit code 1 where something is wrong.
CPython runs inside of the Go library for it, or plainly with --plain.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			p, err := app.Python()
			if err != nil {
				return err
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
	cmd.Flags().StringVar(&out, "json", "", "write the findings as JSON to this file (-: stdout)")
	cmd.Flags().BoolVar(&plain, "plain", false, "in a plain Python, embedded in nothing")
	return cmd
}
