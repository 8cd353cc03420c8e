//! BGP speakers on TCP: who listens, who dials, and whose turn it is to read and to write.
#![forbid(unsafe_code)]
