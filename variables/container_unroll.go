package variables

// unrolls tells whether n items repeated k times are few enough to be tracked one by one; the product of the two may not fit an int.
func unrolls(n, k int) bool { return n == 0 || k <= maxUnroll/n }
