//! Two-octet AS numbers, for peers that do not support four-octet ones: RFC 6793.
//!
//! Received two-octet paths and aggregators become four-octet ones here, and the reverse for sending. Start
//! reading at [`merge_paths`] and [`to_two_octet`].

use super::attr::{self, Attribute, code};
use super::path::{AsPath, SegmentKind};

/// The AS number sent in place of one that two octets cannot hold.
pub const AS_TRANS: u16 = 23_456;

/// Why an AS_PATH is malformed (RFC 7606, section 7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PathFault {
    Kind,
    PastEnd,
    Cut,
    Empty,
}

/// Properties of a well-formed path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct PathSummary {
    /// The path contains AS 0 (RFC 7607).
    pub(super) has_zero: bool,
    /// The path has confederation segments.
    pub(super) has_confed: bool,
    /// The first segment's kind and its first AS.
    pub(super) first: Option<(SegmentKind, u32)>,
}

#[inline]
fn number<const N: usize>(asn: &[u8; N]) -> u32 {
    asn.iter()
        .fold(0, |asn, &octet| asn << 8 | u32::from(octet))
}

/// Checks a path with AS numbers of `N` octets.
#[inline]
pub(super) fn check<const N: usize>(value: &[u8]) -> Result<PathSummary, PathFault> {
    let mut summary = PathSummary::default();
    let mut rest = value;
    while !rest.is_empty() {
        let (&[kind, count], after) = rest.split_first_chunk::<2>().ok_or(PathFault::Cut)?;
        let kind = SegmentKind::from_number(kind).ok_or(PathFault::Kind)?;
        let (asns, after) = after
            .split_at_checked(N * usize::from(count))
            .ok_or(PathFault::PastEnd)?;
        let asns = asns.as_chunks::<N>().0;
        let first = asns.first().ok_or(PathFault::Empty)?;
        summary.first.get_or_insert((kind, number(first)));
        summary.has_confed |= kind.is_confed();
        summary.has_zero |= asns.iter().any(|asn| number(asn) == 0);
        rest = after;
    }
    Ok(summary)
}

/// The segments of a well-formed path with two-octet AS numbers.
fn narrow_segments(value: &[u8]) -> impl Iterator<Item = (SegmentKind, &[[u8; 2]])> + Clone {
    let mut rest = value;
    std::iter::from_fn(move || {
        let (&[kind, count], after) = rest.split_first_chunk::<2>()?;
        let (asns, after) = after.split_at_checked(2 * usize::from(count))?;
        rest = after;
        Some((SegmentKind::from_number(kind)?, asns.as_chunks().0))
    })
}

fn emit_segment(kind: SegmentKind, asns: impl ExactSizeIterator<Item = u32>, out: &mut Vec<u8>) {
    out.extend_from_slice(&[kind as u8, asns.len() as u8]);
    for asn in asns {
        out.extend_from_slice(&asn.to_be_bytes());
    }
}

/// Merges a two-octet AS_PATH with its AS4_PATH, if a usable one is present, into a four-octet path (RFC 6793,
/// section 4.2.3). Both are well-formed.
pub(super) fn merge_paths(as_path: &[u8], as4_path: Option<&[u8]>) -> Vec<u8> {
    let length = |(kind, asns): (SegmentKind, &[[u8; 2]])| match kind {
        SegmentKind::Sequence => asns.len(),
        SegmentKind::Set => 1,
        SegmentKind::ConfedSequence | SegmentKind::ConfedSet => 0,
    };
    let len: usize = narrow_segments(as_path).map(length).sum();
    let as4_path = as4_path
        .map(AsPath::new)
        .filter(|as4_path| as4_path.length() <= len);
    let mut leading = len - as4_path.map_or(0, AsPath::length);
    let mut out = Vec::with_capacity(2 * as_path.len());
    let mut last_sequence = None;
    for (kind, asns) in narrow_segments(as_path) {
        let take = match kind {
            SegmentKind::ConfedSequence | SegmentKind::ConfedSet => asns.len(),
            _ if leading == 0 => break,
            SegmentKind::Set => asns.len(),
            SegmentKind::Sequence => asns.len().min(leading),
        };
        leading -= match kind {
            SegmentKind::Sequence => take,
            SegmentKind::Set => 1,
            SegmentKind::ConfedSequence | SegmentKind::ConfedSet => 0,
        };
        last_sequence = (kind == SegmentKind::Sequence).then_some(out.len());
        emit_segment(kind, asns[..take].iter().map(number), &mut out);
        if take < asns.len() {
            break;
        }
    }
    for segment in as4_path.into_iter().flat_map(AsPath::segments) {
        if segment.kind.is_confed() {
            continue;
        }
        // Rejoin a sequence that the AS4_PATH boundary had split.
        let joined = last_sequence
            .filter(|_| segment.kind == SegmentKind::Sequence)
            .and_then(|at| {
                Some((
                    at,
                    out[at + 1].checked_add(u8::try_from(segment.asns().len()).ok()?)?,
                ))
            });
        match joined {
            Some((at, count)) => {
                out[at + 1] = count;
                for asn in segment.asns() {
                    out.extend_from_slice(&asn.to_be_bytes());
                }
            }
            None => emit_segment(segment.kind, segment.asns(), &mut out),
        }
        last_sequence = None;
    }
    out
}

/// Widens a six-octet AGGREGATOR to eight octets.
pub(super) fn wide_aggregator(value: &[u8; 6]) -> [u8; 8] {
    let [a, b, address @ ..] = *value;
    let mut wide = [0, 0, a, b, 0, 0, 0, 0];
    wide[4..].copy_from_slice(&address);
    wide
}

fn narrow(asn: u32) -> u16 {
    u16::try_from(asn).unwrap_or(AS_TRANS)
}

/// Appends canonical attributes in the form for a peer without four-octet AS numbers (RFC 6793, section 4.2.2),
/// adding AS4_PATH and AS4_AGGREGATOR where a number does not fit two octets.
pub fn to_two_octet(attributes: &[u8], out: &mut Vec<u8>) {
    let mut as4_path = None;
    let mut as4_aggregator = None;
    let flush = |as4_path: &mut Option<AsPath<'_>>,
                 as4_aggregator: &mut Option<&[u8]>,
                 out: &mut Vec<u8>| {
        if let Some(path) = as4_path.take() {
            attr::put_with(code::AS4_PATH, out, |out| {
                for segment in path.segments().filter(|segment| !segment.kind.is_confed()) {
                    emit_segment(segment.kind, segment.asns(), out);
                }
            });
        }
        if let Some(aggregator) = as4_aggregator.take() {
            attr::put(code::AS4_AGGREGATOR, aggregator, out);
        }
    };
    for attribute in attr::iter(attributes) {
        if attribute.code > code::AS4_PATH {
            flush(&mut as4_path, &mut as4_aggregator, out);
        }
        match attribute {
            Attribute {
                code: code::AS_PATH,
                flags,
                value,
                ..
            } => {
                let path = AsPath::new(value);
                let is_wide = |segment: super::path::Segment<'_>| {
                    !segment.kind.is_confed() && segment.asns().any(|asn| asn >> 16 != 0)
                };
                as4_path = path.segments().any(is_wide).then_some(path);
                attr::emit_with(flags, code::AS_PATH, out, |out| {
                    for segment in path.segments() {
                        out.extend_from_slice(&[segment.kind as u8, segment.asns().len() as u8]);
                        for asn in segment.asns() {
                            out.extend_from_slice(&narrow(asn).to_be_bytes());
                        }
                    }
                });
            }
            Attribute {
                code: code::AGGREGATOR,
                flags,
                value: &[a, b, c, d, ref address @ ..],
                ..
            } => {
                let asn = u32::from_be_bytes([a, b, c, d]);
                as4_aggregator = (asn >> 16 != 0).then_some(attribute.value);
                attr::emit_with(flags, code::AGGREGATOR, out, |out| {
                    out.extend_from_slice(&narrow(asn).to_be_bytes());
                    out.extend_from_slice(address);
                });
            }
            _ => out.extend_from_slice(attribute.octets),
        }
    }
    flush(&mut as4_path, &mut as4_aggregator, out);
}
