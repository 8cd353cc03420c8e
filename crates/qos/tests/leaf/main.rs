//! Disciplines that hold packets themselves, or share them out by class, by scenario and by property.

mod classful;
mod codel;
mod fairness;
mod fq_codel;
mod harness;
mod properties;
mod reference;
mod sfq;
