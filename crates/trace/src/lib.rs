//! From packets to TCP connections and their statistics: the analyser behind `headend trace`.
#![forbid(unsafe_code)]
