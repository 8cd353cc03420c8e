//! `headend trace` as a user runs it, on small captures: tcptrace's own, from `testdata/trace/tcptrace`.

mod choosing;
mod home;
mod input;
mod page;
mod parts;
mod reports;
mod two;
mod usage;
mod why;
mod writing;
