//! Set-up, tests, boundaries, benchmarks.

fn main() {}
