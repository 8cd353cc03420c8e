//! Routers by the thousand in one process, each a speaker of `bgp`, in real or in virtual time.
#![forbid(unsafe_code)]
