//! Disciplines that hold packets themselves, by scenario and by property.

mod codel;
mod fq_codel;
mod harness;
mod properties;
mod reference;
