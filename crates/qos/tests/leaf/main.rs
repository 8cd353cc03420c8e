//! Disciplines that hold packets themselves, by scenario and by property.

mod codel;
mod harness;
mod reference;
