package cli

import "os"

// write writes text to a file, or to stdout for "-".
func (app *App) write(file string, text []byte) error {
	if file == "-" {
		_, err := app.Stdout.Write(text)
		return err
	}
	if err := os.WriteFile(file, text, 0o644); err != nil {
		return Problemf("%v", err)
	}
	return nil
}
