//! Reads two captures in step.

use std::fs::File;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use capfile::{Block, OpenError, Reader, Statistics};
use paths::{Align, Aligned, Best, DEPTH, Findings, HEAD, Matcher, Point, Sight, Sink, TELL_AFTER};
use trace::FileReport;
use wire::packet::{self, Layers, Packet};

use super::super::progress::Progress;

/// Kinds of encapsulation that are listed.
const KINDS_MAX: usize = 8;

/// Interfaces of one file that are counted.
const INTERFACES_MAX: usize = 64;

/// A capture, or one interface of it.
pub(super) struct Capture {
    pub(super) name: String,
    path: PathBuf,
    interface: Option<u16>,
    reader: Reader<File>,
    block: Block,
    at: usize,
    number: u64,
    has_ended: bool,
    /// Payload bytes that are hashed.
    depth: usize,
    /// Encapsulations around the packets, and the latest.
    pub(super) kinds: Vec<String>,
    layers: Option<Layers>,
    /// Packets without an IP header that can be read.
    pub(super) unread: u64,
    /// Those among them that the snap length cut off.
    pub(super) cut: u64,
    pub(super) size: u64,
}

impl Capture {
    /// Opens a capture.
    ///
    /// # Errors
    /// It cannot be read, or its format is unknown.
    pub(super) fn open(path: &Path, interface: Option<u16>) -> Result<Capture> {
        let name = path.display().to_string();
        let (reader, size) = reader(path)?;
        Ok(Capture {
            name,
            path: path.to_owned(),
            interface,
            reader,
            block: Block::new(),
            at: 0,
            number: 0,
            has_ended: false,
            depth: DEPTH,
            kinds: Vec::new(),
            layers: None,
            unread: 0,
            cut: 0,
            size,
        })
    }

    /// The same capture from its start.
    ///
    /// # Errors
    /// It cannot be read any more.
    fn again(&self, depth: usize) -> Result<Capture> {
        let mut capture = Capture::open(&self.path, self.interface)?;
        capture.depth = depth;
        Ok(capture)
    }

    /// The time of the next packet; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read.
    #[inline]
    fn peek(&mut self) -> Result<Option<i64>> {
        loop {
            let Some(record) = self.block.records().get(self.at) else {
                if self.refill()? {
                    continue;
                }
                return Ok(None);
            };
            if self.interface.is_none_or(|own| own == record.interface) {
                return Ok(Some(record.time_ns));
            }
            self.at += 1;
            self.number += 1;
        }
    }

    fn refill(&mut self) -> Result<bool> {
        self.at = 0;
        if self.has_ended {
            return Ok(false);
        }
        let more = self.reader.read_block(&mut self.block);
        let more = more.with_context(|| format!("{}: cannot be read", self.name))?;
        self.has_ended = !more;
        Ok(more)
    }

    /// Takes the packet that was peeked at; `None` if it has no IP header that can be read.
    #[inline]
    fn take(&mut self) -> Option<Sight> {
        let record = *self.block.records().get(self.at)?;
        self.at += 1;
        self.number += 1;
        let mut packet = Packet::new();
        let frame = self.block.bytes(&record);
        let decoded = packet::decode(record.link, frame, record.length, &mut packet);
        let sight = decoded
            .ok()
            .and_then(|()| Sight::new(self.number, record.time_ns, &packet, self.depth));
        if sight.is_none() {
            self.unread += 1;
            self.cut += u64::from(record.captured < record.length);
        } else if self.layers != Some(packet.layers) {
            self.note_layers(packet.layers);
        }
        sight
    }

    /// Whether the packets that were peeked at have the same length, and the same bytes as far as both were captured.
    fn has_same_packet(&self, other: &Capture) -> bool {
        let here = self.block.records().get(self.at);
        let there = other.block.records().get(other.at);
        let (Some(here), Some(there)) = (here, there) else {
            return false;
        };
        let pairs = self.block.bytes(here).iter().zip(other.block.bytes(there));
        here.link == there.link
            && here.length == there.length
            && pairs.into_iter().all(|(a, b)| a == b)
    }

    #[cold]
    fn note_layers(&mut self, layers: Layers) {
        self.layers = Some(layers);
        let kinds = layers.as_slice().iter().map(|layer| {
            let text = layer.to_string();
            text.split(' ').next().unwrap_or_default().to_owned()
        });
        let kind = kinds.collect::<Vec<_>>().join(", ");
        if self.kinds.len() < KINDS_MAX && !self.kinds.contains(&kind) {
            self.kinds.push(kind);
        }
    }

    /// The fewest payload bytes of a packet that the capture cut off, among the first packets.
    ///
    /// # Errors
    /// The file cannot be read.
    fn shortest(&mut self) -> Result<usize> {
        let mut depth = DEPTH;
        if self.peek()?.is_none() {
            return Ok(depth);
        }
        for record in self.block.records() {
            let mut packet = Packet::new();
            let frame = self.block.bytes(record);
            let decoded = packet::decode(record.link, frame, record.length, &mut packet);
            if record.captured < record.length && decoded.is_ok() && packet.protocol != 6 {
                depth = depth.min(packet.transport.len().saturating_sub(8));
            }
        }
        Ok(depth)
    }

    /// Prints the faults of the file. Whether there are none.
    pub(super) fn report_faults(&self) -> bool {
        let faults = self.reader.faults();
        for line in FileReport::of(&self.name, faults).lines() {
            eprintln!("headend: {line}");
        }
        faults.is_empty()
    }

    /// Prints what the capture itself lost, if the file says it.
    fn report_loss(&self) {
        let mut report = FileReport::of(&self.name, self.reader.faults());
        report.statistics = self.statistics();
        if let Some(line) = report.loss() {
            eprintln!("headend: {line}");
        }
    }

    /// What the capturing host counted.
    pub(super) fn statistics(&self) -> Statistics {
        self.reader.statistics()
    }
}

/// Prints what the captures themselves lost. One file with both points has one capture.
pub(super) fn report_losses(captures: &[Capture; 2], files: usize) {
    captures.iter().take(files).for_each(Capture::report_loss);
}

fn reader(path: &Path) -> Result<(Reader<File>, u64)> {
    let name = path.display();
    let file = File::open(path).with_context(|| format!("{name}: cannot be opened"))?;
    let meta = file
        .metadata()
        .with_context(|| format!("{name}: cannot be read"))?;
    if !meta.is_file() {
        bail!(
            "{name}: this is no file; diff reads its captures twice, so write the packets to a file first"
        );
    }
    let reader = Reader::new(file).map_err(|error| match error {
        OpenError::Empty => {
            anyhow::anyhow!("{name}: the file is empty: there are no packets to compare")
        }
        error => anyhow::anyhow!("{name}: {error}"),
    })?;
    Ok((reader, meta.len()))
}

/// The two interfaces of one capture.
///
/// # Errors
/// It cannot be read, or has fewer or more than two interfaces with packets.
pub(super) fn interfaces(path: &Path) -> Result<[u16; 2]> {
    let (mut reader, _) = reader(path)?;
    let mut block = Block::new();
    let mut found: Vec<u16> = Vec::new();
    let name = path.display();
    while reader
        .read_block(&mut block)
        .with_context(|| format!("{name}: cannot be read"))?
    {
        for record in block.records() {
            if found.len() < INTERFACES_MAX && !found.contains(&record.interface) {
                found.push(record.interface);
            }
        }
    }
    found.sort_unstable();
    match found[..] {
        [a, b] => Ok([a, b]),
        _ => bail!(
            "{name}: one capture is compared with itself if it has packets of two interfaces; this one has {}. Name a \
             second capture",
            found.len()
        ),
    }
}

/// By how much the times of B are later if B is a copy of A, packet by packet, perhaps with a shorter snap length.
///
/// # Errors
/// A file cannot be read.
pub(super) fn shift_of_copy(captures: &[Capture; 2]) -> Result<Option<i64>> {
    let [a, b] = captures;
    let (mut a, mut b) = (a.again(a.depth)?, b.again(b.depth)?);
    let mut shift = None;
    loop {
        let (at_a, at_b) = match (a.peek()?, b.peek()?) {
            (Some(at_a), Some(at_b)) => (at_a, at_b),
            (None, None) => return Ok(shift),
            _ => return Ok(None),
        };
        let difference = at_b.saturating_sub(at_a);
        let is_same = *shift.get_or_insert(difference) == difference && a.has_same_packet(&b);
        if !is_same {
            return Ok(None);
        }
        (a.at, b.at) = (a.at + 1, b.at + 1);
    }
}

/// The captures fit together.
pub(super) struct Fit {
    pub(super) aligned: Aligned,
    pub(super) first: [i64; 2],
    pub(super) depth: usize,
}

/// Finds packets that both captures share.
///
/// # Errors
/// A file cannot be read, or the captures share too few packets.
pub(super) fn align(captures: &mut [Capture; 2], seed: u64) -> Result<Fit> {
    let depth = captures[0].shortest()?.min(captures[1].shortest()?);
    for capture in captures.iter_mut() {
        capture.depth = depth;
    }
    let mut align = Align::new(seed);
    let mut told = false;
    loop {
        let mut ended = 0;
        for point in [Point::A, Point::B] {
            let capture = &mut captures[point as usize];
            match capture.peek()? {
                Some(_) => {
                    if let Some(sight) = capture.take() {
                        align.see(point, &sight);
                    }
                }
                None => ended += 1,
            }
        }
        if ended == 2 || align.is_enough() {
            break;
        }
        let least = align.count(Point::A).min(align.count(Point::B));
        if !told && least >= TELL_AFTER && align.result().is_none() {
            told = true;
            eprintln!(
                "headend: the first {least} packets of {} and {} have too few in common ({}); looking further",
                captures[0].name,
                captures[1].name,
                nearest(align.best())
            );
        }
    }
    for (point, capture) in [Point::A, Point::B].into_iter().zip(&*captures) {
        if align.count(point) == 0 && capture.cut > 0 {
            bail!(
                "{}: the snap length cut off {} within their headers, and no other packet has an IP header: there is \
                 nothing to compare",
                capture.name,
                super::page::packets(capture.cut)
            );
        }
        if align.count(point) == 0 {
            bail!(
                "{}: no packet with an IP header: there is nothing to compare",
                capture.name
            );
        }
    }
    let first = [Point::A, Point::B].map(|point| align.first(point).unwrap_or(0));
    match align.result() {
        Some(aligned) => Ok(Fit {
            aligned,
            first,
            depth,
        }),
        None => bail!(
            "{} and {} are not captures of one path: {} packets of the first and {} of the second were compared with \
             the first {HEAD} of the other; the best match: {}",
            captures[0].name,
            captures[1].name,
            align.count(Point::A),
            align.count(Point::B),
            nearest(align.best())
        ),
    }
}

fn nearest(best: Best) -> String {
    match best {
        Best::Packets(count, (a, b)) => {
            format!("{count} packets look alike, the first is {a} of A and {b} of B")
        }
        Best::Flow(key) => format!("both have {key}, but no packet of it is the same"),
        Best::Nothing => "no flow and no packet is the same".to_owned(),
    }
}

/// Matches all packets.
///
/// # Errors
/// A file cannot be read.
pub(super) fn compare<S: Sink>(
    captures: &mut [Capture; 2],
    depth: usize,
    mut matcher: Matcher,
    sink: &mut S,
    progress: &Progress,
) -> Result<Findings> {
    for capture in captures.iter_mut() {
        *capture = capture.again(depth)?;
    }
    let [a, b] = captures;
    // The order of the file is that of the packets' passing, also where times are the same.
    let is_one_file = a.interface.is_some();
    let mut turns = 0u32;
    let mut ended = [false; 2];
    loop {
        let times = (a.peek()?, b.peek()?);
        let point = match times {
            (Some(_), Some(_)) if is_one_file => match a.number < b.number {
                true => Point::A,
                false => Point::B,
            },
            (Some(at_a), Some(at_b)) => matcher.next(at_a, at_b),
            (Some(_), None) => Point::A,
            (None, Some(_)) => Point::B,
            (None, None) => break,
        };
        for (point, time) in [(Point::A, times.0), (Point::B, times.1)] {
            if time.is_none() && !std::mem::replace(&mut ended[point as usize], true) {
                matcher.end(point, sink);
            }
        }
        let capture = match point {
            Point::A => &mut *a,
            Point::B => &mut *b,
        };
        if let Some(sight) = capture.take() {
            matcher.see(point, &sight, sink);
        }
        turns += 1;
        if turns.is_multiple_of(1 << 16) {
            progress.at(a.reader.consumed() + b.reader.consumed());
        }
    }
    Ok(matcher.finish(sink))
}
