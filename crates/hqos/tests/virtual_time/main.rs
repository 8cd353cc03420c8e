//! Trees in virtual time: rates and shares, limits, random operations against a model.

mod limits;
mod random;
mod shares;
mod world;
