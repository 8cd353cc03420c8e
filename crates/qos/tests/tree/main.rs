//! Tests shapers, fair queues, trees and policies in virtual time.

mod change;
mod fair;
mod htb;
mod policy;
mod tbf;
mod world;
