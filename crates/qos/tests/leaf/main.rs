//! Tests the disciplines that hold packets or distribute them to classes, by scenarios and by properties.

mod classful;
mod codel;
mod fairness;
mod fq_codel;
mod harness;
mod properties;
mod reference;
mod sfq;
