//! headend
fn main() {}
