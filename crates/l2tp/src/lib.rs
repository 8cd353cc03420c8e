//! l2tp
