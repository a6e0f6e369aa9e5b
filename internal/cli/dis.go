package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// newDis returns `godynamo dis`.
func newDis(app *App) *cobra.Command {
	var (
		module                  bool
		call                    int
		arguments, backend, out string
	)
	cmd := &cobra.Command{
		Use:   "dis [flags] SCRIPT:FUNCTION [ARGS...]",
		Short: "Show a function's bytecode beside its translations, their guards and graphs",
		Long: `Runs a script up to the first call of a function and shows what that call is translated to: CPython's instructions and the
translated ones side by side, line by line, for the function and for what it splits into; guards; graph.`,
		Example: `  godynamo dis train.py:step
  godynamo dis model.py:Model.forward --args 'Model(), torch.ones(2, 3)'
  godynamo dis --call 3 -m package.train:step --epochs 1`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return Problemf("dis needs a function: godynamo dis SCRIPT:FUNCTION")
			}
			if name, function, found := strings.Cut(args[0], ":"); !found || name == "" || function == "" {
				return Problemf("%s names no function: SCRIPT:FUNCTION, such as train.py:step or train.py:Model.forward", args[0])
			}
			if call < 1 {
				return Problemf("--call counts from 1, not %d", call)
			}
			options := forwarded{}
			options.flag(cmd, "module", module)
			options.values("call", strconv.Itoa(call))
			options.values("backend", backend)
			if cmd.Flags().Changed("args") {
				options.values("args", arguments)
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
	flags := cmd.Flags()
	flags.SetInterspersed(false)
	flags.BoolVarP(&module, "module", "m", false, "SCRIPT is the name of a module, as with python -m")
	flags.IntVar(&call, "call", 1, "show this call of the function, counted from 1")
	flags.StringVar(&arguments, "args", "", "call it with these arguments when the script has run as a module, instead of waiting for a call")
	flags.StringVarP(&backend, "backend", "b", "eager", "backend for the graphs: a registered name, or MODULE:NAME of a callable")
	flags.StringVar(&out, "json", "", "write it as JSON to this file instead (-: stdout)")
	return cmd
}
