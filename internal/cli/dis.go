package cli

import "github.com/spf13/cobra"

// newDis returns `godynamo dis`.
func newDis(app *App) *cobra.Command {
	var (
		call callFlags
		out  string
	)
	cmd := &cobra.Command{
		Use:   "dis" + callUse,
		Short: "Show a function's bytecode beside its translations, their guards and graphs",
		Long: `Runs a script up to the first call of a function and shows the translation of that call: CPython's
instructions and the translated ones side by side, line by line, for the function and its pieces after
graph breaks; guards; graph. The script's own arguments follow --.`,
		Example: `  godynamo dis train.py:step
  godynamo dis train.py:Model.forward --json forward.json -- --epochs 1
  godynamo dis model.py:Model.forward --args 'Model(), torch.ones(2, 3)'
  godynamo dis --call 3 -m package.train:step`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := call.options(cmd, args)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("json") {
				options.values("json", out)
			}
			p, err := app.Python()
			if err != nil {
				return err
			}
			line := append(append([]string{"dis"}, options...), "--")
			return app.Embed(p, append(line, args...)...)
		},
	}
	call.add(cmd)
	cmd.Flags().StringVar(&out, "json", "",
		"write it as JSON to this file instead (-: stdout; what the script prints goes to stderr then)")
	return cmd
}
