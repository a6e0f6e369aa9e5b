package cli

import (
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

// callFlags are the flags and arguments of `dis` and `explain`, which run one call of a function.
type callFlags struct {
	module             bool
	call               int
	arguments, backend string
}

// callUse is the usage line of `dis` and `explain` without the command's name.
const callUse = " [flags] SCRIPT:FUNCTION [-- ARGS...]"

// add defines the flags on a command.
func (c *callFlags) add(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVarP(&c.module, "module", "m", false, "SCRIPT is the name of a module, as with python -m")
	flags.IntVar(&c.call, "call", 1, "this call of the function, counted from 1")
	flags.StringVar(&c.arguments, "args", "",
		"call it with these arguments when the script has run as a module, instead of waiting for a call")
	flags.StringVarP(&c.backend, "backend", "b", "",
		"backend for the graphs: a registered name, or MODULE:NAME of a callable (default: the function's, or eager)")
}

// options checks the arguments and returns the flags that are passed to Python. The error is a Problemf.
func (c *callFlags) options(cmd *cobra.Command, args []string) (forwarded, error) {
	name := cmd.Name()
	if len(args) == 0 || cmd.ArgsLenAtDash() == 0 {
		return nil, Problemf("%s needs a function: godynamo %s SCRIPT:FUNCTION", name, name)
	}
	if script, function, found := strings.Cut(args[0], ":"); !found || script == "" || function == "" {
		return nil, Problemf("%s names no function: SCRIPT:FUNCTION, such as train.py:step or train.py:Model.forward",
			args[0])
	}
	if dash := cmd.ArgsLenAtDash(); len(args) > 1 && dash != 1 {
		return nil, Problemf("%s: arguments of the script follow --: godynamo %s %s -- %s", args[1], name, args[0],
			strings.Join(args[1:], " "))
	}
	if c.call < 1 {
		return nil, Problemf("--call counts from 1, not %d", c.call)
	}
	options := forwarded{}
	options.flag(cmd, "module", c.module)
	options.values("call", strconv.Itoa(c.call))
	if cmd.Flags().Changed("backend") {
		options.values("backend", c.backend)
	}
	if cmd.Flags().Changed("args") {
		options.values("args", c.arguments)
	}
	return options, nil
}
