//! Reads a result file. It refuses any other file and says why.

use std::cell::Cell;
use std::fmt;
use std::io::{self, BufReader, Read};

use base::Duration;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::{FORMAT, SAMPLES_MAX, SCHEMA, VERSION};
use crate::outcome::{Outcome, StreamOutcome, Summary};
use crate::plan::StreamPlan;
use crate::sample::{OneWay, Sample};
use crate::stream::Run;

/// Bytes read at a time.
const PIECE: usize = 64 * 1024;

/// Why a file was refused.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It is not a result file.
    #[error("not a result of headend ping")]
    Foreign,
    /// It was written by a later version.
    #[error("made by a newer version of headend (format version {0}; this one reads {VERSION})")]
    Newer(u64),
    /// It is truncated.
    #[error("cut short")]
    Truncated,
    /// It is a result file, and damaged.
    #[error("damaged: {0}")]
    Damaged(String),
    /// It could not be read.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Reads a result, in blocks.
///
/// # Errors
/// As [`ReadError`] says.
pub fn read<R: Read>(input: R) -> Result<Outcome, ReadError> {
    let head = Head::default();
    let input = Input { input, head: &head };
    let mut json = serde_json::Deserializer::from_reader(BufReader::with_capacity(PIECE, input));
    let outcome = Document { head: &head }
        .deserialize(&mut json)
        .and_then(|outcome| json.end().map(|()| outcome));
    outcome.map_err(|error| {
        // A truncated number looks complete, and may be wrong.
        if error.is_eof() || head.ended.get() {
            return ReadError::Truncated;
        }
        if error.is_io() {
            return ReadError::Io(error.into());
        }
        match (head.is_ours.get(), head.version.get()) {
            (false, _) => ReadError::Foreign,
            (true, Some(version)) if version > VERSION => ReadError::Newer(version),
            (true, _) => ReadError::Damaged(error.to_string()),
        }
    })
}

/// The input, which records whether its end was reached. The JSON reader gets there only after reading everything
/// before. A truncated compressed file ends there too.
struct Input<'a, R> {
    input: R,
    head: &'a Head,
}

impl<R: Read> Read for Input<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.input.read(buffer);
        let ended = match &read {
            Ok(octets) => *octets == 0,
            Err(error) => error.kind() == io::ErrorKind::UnexpectedEof,
        };
        self.head.ended.set(self.head.ended.get() || ended);
        read
    }
}

/// The parts that were read before an error.
#[derive(Default)]
struct Head {
    ended: Cell<bool>,
    is_ours: Cell<bool>,
    version: Cell<Option<u64>>,
}

struct Document<'a> {
    head: &'a Head,
}

impl<'de> DeserializeSeed<'de> for Document<'_> {
    type Value = Outcome;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Outcome, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Document<'_> {
    type Value = Outcome;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Outcome, A::Error> {
        let (key, format): (String, String) = next(&mut map)?;
        if key != "format" || format != FORMAT {
            return Err(A::Error::custom("another format"));
        }
        self.head.is_ours.set(true);
        let (key, version): (String, u64) = next(&mut map)?;
        self.head.version.set((key == "version").then_some(version));
        if !matches!(self.head.version.get(), Some(1..=VERSION)) {
            return Err(A::Error::custom("no version that is known"));
        }
        let mut tool = None;
        let mut schema: Option<String> = None;
        let mut numbers = [None; 4];
        let mut interrupted = None;
        let mut streams = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "schema" => once(&mut schema, map.next_value()?, "schema")?,
                "tool" => once(&mut tool, map.next_value()?, "tool")?,
                "started_unix_ns" => once(&mut numbers[0], map.next_value()?, "started_unix_ns")?,
                "duration_ns" => once(&mut numbers[1], map.next_value()?, "duration_ns")?,
                "wait_ns" => once(&mut numbers[2], map.next_value()?, "wait_ns")?,
                "ignored_replies" => once(&mut numbers[3], map.next_value()?, "ignored_replies")?,
                "interrupted" => once(&mut interrupted, map.next_value()?, "interrupted")?,
                "streams" => once(&mut streams, map.next_value_seed(Streams)?, "streams")?,
                _ => return Err(A::Error::custom(format_args!("unknown key {key:?}"))),
            }
        }
        if version > 1 && schema.as_deref() != Some(SCHEMA) {
            return Err(A::Error::custom("another schema"));
        }
        Ok(Outcome {
            tool: tool.ok_or_else(|| missing("tool"))?,
            started_unix_ns: numbers[0].ok_or_else(|| missing("started_unix_ns"))?,
            duration: nanos(numbers[1]).ok_or_else(|| missing("duration_ns"))?,
            wait: nanos(numbers[2]).ok_or_else(|| missing("wait_ns"))?,
            ignored_replies: numbers[3].ok_or_else(|| missing("ignored_replies"))?,
            interrupted: interrupted.ok_or_else(|| missing("interrupted"))?,
            streams: streams.ok_or_else(|| missing("streams"))?,
        })
    }
}

fn next<'de, A: MapAccess<'de>, V: serde::Deserialize<'de>>(
    map: &mut A,
) -> Result<(String, V), A::Error> {
    map.next_entry()?
        .ok_or_else(|| A::Error::custom("an empty object"))
}

fn once<T, E: Error>(place: &mut Option<T>, value: T, key: &'static str) -> Result<(), E> {
    match place.replace(value) {
        None => Ok(()),
        Some(_) => Err(E::duplicate_field(key)),
    }
}

fn missing<E: Error>(key: &'static str) -> E {
    E::missing_field(key)
}

fn nanos(number: Option<u64>) -> Option<Duration> {
    number.map(Duration::from_nanos)
}

struct Streams;

impl<'de> DeserializeSeed<'de> for Streams {
    type Value = Vec<StreamOutcome>;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Self::Value, D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Streams {
    type Value = Vec<StreamOutcome>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of streams")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Self::Value, A::Error> {
        let mut streams = Vec::new();
        let mut room = SAMPLES_MAX;
        while let Some(stream) = all.next_element_seed(Stream { room })? {
            room -= stream.samples.len();
            streams.push(stream);
        }
        Ok(streams)
    }
}

struct Stream {
    /// Samples that the file may still have.
    room: usize,
}

impl<'de> DeserializeSeed<'de> for Stream {
    type Value = StreamOutcome;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<StreamOutcome, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Stream {
    type Value = StreamOutcome;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a stream")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<StreamOutcome, A::Error> {
        let mut plan: Option<StreamPlan> = None;
        let mut summary: Option<Summary> = None;
        let mut columns = None;
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "plan" => once(&mut plan, map.next_value()?, "plan")?,
                "summary" => once(&mut summary, map.next_value()?, "summary")?,
                "samples" => {
                    let read = map.next_value_seed(Columns::new(self.room))?;
                    once(&mut columns, read, "samples")?;
                }
                _ => return Err(A::Error::custom(format_args!("unknown key {key:?}"))),
            }
        }
        let plan = plan.ok_or_else(|| missing("plan"))?;
        let summary = summary.ok_or_else(|| missing("summary"))?;
        let columns = columns.ok_or_else(|| missing("samples"))?;
        if columns.samples.len() as u64 > summary.transmitted {
            return Err(A::Error::custom("more samples than packets"));
        }
        columns.finish(plan, summary).map_err(A::Error::custom)
    }
}

/// The columns of a stream's samples, in the order of [`NAMES`].
struct Columns {
    room: usize,
    seen: u16,
    deltas: Runs,
    samples: Vec<Sample>,
    one_ways: Vec<OneWay>,
}

const NAMES: [&str; 9] = [
    "due_delta_ns",
    "late_ns",
    "rtt_ns",
    "ttl",
    "tos",
    "flags",
    "up_ns",
    "turn_ns",
    "count",
];
/// The first six, which every stream has. The other three come together or not at all.
const COMMON: u16 = 0b0_0011_1111;
const ALL: u16 = 0b1_1111_1111;

/// The runs of the schedule, found from the differences of due times before the interval is known.
#[derive(Default)]
struct Runs {
    /// Index and difference of each change.
    changes: Vec<(u64, u64)>,
    due_ns: i64,
}

impl Columns {
    fn new(room: usize) -> Self {
        Self {
            room,
            seen: 0,
            deltas: Runs::default(),
            samples: Vec::new(),
            one_ways: Vec::new(),
        }
    }

    /// Stores a number in a packet's sample; `None` if the number is out of range.
    fn put(&mut self, column: usize, index: usize, number: i64) -> Option<()> {
        if column < 6 {
            let sample = &mut self.samples[index];
            match column {
                0 => {
                    self.deltas.due_ns = self.deltas.due_ns.checked_add(number)?;
                    let delta = u64::try_from(number).ok()?;
                    if self
                        .deltas
                        .changes
                        .last()
                        .is_none_or(|last| last.1 != delta)
                    {
                        self.deltas.changes.push((index as u64, delta));
                    }
                    sample.load_sent(self.deltas.due_ns)
                }
                1 => sample.load_sent(number),
                2 => sample.load_rtt(number),
                3 => sample.load_ttl(number),
                4 => sample.load_tos(number),
                _ => sample.load_flags(number),
            }
        } else {
            let way = &mut self.one_ways[index];
            match column {
                6 => way.up_ns = number,
                7 => way.turn_ns = u32::try_from(number).ok()?,
                _ => way.count = u32::try_from(number).ok()?,
            }
            Some(())
        }
    }

    fn finish(mut self, plan: StreamPlan, summary: Summary) -> Result<StreamOutcome, &'static str> {
        if self.seen != COMMON && self.seen != ALL {
            return Err("columns are missing");
        }
        let both_ways = self.seen == ALL;
        if both_ways && self.one_ways.len() != self.samples.len() {
            return Err("columns differ in length");
        }
        if !self.samples.iter_mut().all(Sample::finish_load) {
            return Err("flags and round trips contradict each other");
        }
        let runs = self.deltas.finish(plan.interval, self.samples.len() as u64);
        Ok(StreamOutcome {
            plan,
            summary,
            runs,
            samples: self.samples,
            one_ways: both_ways.then_some(self.one_ways),
        })
    }
}

impl Runs {
    /// The runs as a schedule with this interval would have recorded them.
    fn finish(self, interval: Duration, length: u64) -> Vec<Run> {
        let mut runs = Vec::new();
        let mut due_ns = 0_u64;
        for (number, &(index, delta)) in self.changes.iter().enumerate() {
            let end = self.changes.get(number + 1).map_or(length, |next| next.0);
            let regular = delta == interval.as_nanos();
            if regular && index > 0 {
                due_ns = due_ns.saturating_add(delta.saturating_mul(end - index));
                continue;
            }
            for index in index..end {
                due_ns = due_ns.saturating_add(delta);
                if index == 0 || !regular {
                    runs.push(Run { index, due_ns });
                }
            }
        }
        runs
    }
}

impl<'de> DeserializeSeed<'de> for Columns {
    type Value = Columns;

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<Columns, D::Error> {
        from.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Columns {
    type Value = Columns;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("columns of samples")
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut map: A) -> Result<Columns, A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            let Some(column) = NAMES.iter().position(|name| *name == key) else {
                return Err(A::Error::custom(format_args!("unknown column {key:?}")));
            };
            if self.seen & 1 << column != 0 {
                return Err(A::Error::duplicate_field(NAMES[column]));
            }
            map.next_value_seed(Column {
                columns: &mut self,
                column,
            })?;
            self.seen |= 1 << column;
        }
        Ok(self)
    }
}

struct Column<'a> {
    columns: &'a mut Columns,
    column: usize,
}

impl<'de> DeserializeSeed<'de> for Column<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, from: D) -> Result<(), D::Error> {
        from.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Column<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an array of whole numbers")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut numbers: A) -> Result<(), A::Error> {
        let Column { columns, column } = self;
        let is_first = columns.seen & if column < 6 { COMMON } else { ALL & !COMMON } == 0;
        let length = match column {
            0..6 => columns.samples.len(),
            _ => columns.one_ways.len(),
        };
        let mut index = 0;
        while let Some(number) = numbers.next_element::<i64>()? {
            if is_first && index < columns.room {
                match column {
                    0..6 => columns.samples.push(Sample::default()),
                    _ => columns.one_ways.push(OneWay::default()),
                }
            } else if is_first || index >= length {
                return Err(A::Error::custom("columns are too long"));
            }
            columns.put(column, index, number).ok_or_else(|| {
                let name = NAMES[column];
                A::Error::custom(format_args!("{name}: {number} cannot be"))
            })?;
            index += 1;
        }
        if !is_first && index < length {
            return Err(A::Error::custom("columns differ in length"));
        }
        Ok(())
    }
}
