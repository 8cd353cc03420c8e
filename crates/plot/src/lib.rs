//! Pictures of measurements: SVG and PNG to print, HTML to look into.
#![forbid(unsafe_code)]
