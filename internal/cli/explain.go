package cli

import "github.com/spf13/cobra"

// newExplain returns `godynamo explain`.
func newExplain(app *App) *cobra.Command {
	var (
		call  callFlags
		toEnd bool
	)
	files := []struct{ name, usage string }{
		{name: "json",
			usage: "write it as JSON to this file instead (-: stdout; what the script prints goes to stderr then)"},
		{name: "html", usage: "write it as a page that opens offline to this file instead"},
		{name: "svg", usage: "write a picture of the pieces and their graphs to this file instead"},
		{name: "dot", usage: "write the report in the DOT language to this file instead"},
	}
	cmd := &cobra.Command{
		Use:   "explain" + callUse,
		Short: "Explain what a call of a function captured, and why not the rest",
		Long: `Runs a script up to the first call of a function and explains that call: graphs, graph breaks with code,
hint and source line, how much was captured, which calls kept code out of the graphs, guards, recompiles.
The script's own arguments follow --.`,
		Example: `  godynamo explain train.py:step
  godynamo explain train.py:Model.forward --html forward.html -- --epochs 1
  godynamo explain model.py:Model --args 'Model(), torch.ones(2, 3)'
  godynamo explain --call 3 -m package.train:step --json -`,
		RunE: func(cmd *cobra.Command, args []string) error {
			options, err := call.options(cmd, args)
			if err != nil {
				return err
			}
			options.flag(cmd, "to-end", toEnd)
			for _, f := range files {
				if cmd.Flags().Changed(f.name) {
					value, _ := cmd.Flags().GetString(f.name)
					options.values(f.name, value)
				}
			}
			return app.forward("explain", options, args)
		},
	}
	call.add(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&toEnd, "to-end", false, "let the script run to its end after the call")
	for _, f := range files {
		flags.String(f.name, "", f.usage)
	}
	return cmd
}
