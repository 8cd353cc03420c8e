//! Order statistics.

/// The value at `share` (0 to 1) of sorted values; `None` if there is none.
pub(crate) fn at(sorted: &[f64], share: f64) -> Option<f64> {
    let last = sorted.len().checked_sub(1)?;
    let place = (last as f64 * share.clamp(0.0, 1.0)).round() as usize;
    sorted.get(place).copied()
}

/// The values in order.
pub(crate) fn sorted(values: impl IntoIterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}
