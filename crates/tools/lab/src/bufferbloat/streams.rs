//! TCP streams to and from the load service, each on a thread of its own. `ping::load` describes the messages.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, bail};
use ping::load::{
    ANSWER, Answer, Congestion, Direction, GREETING, Greeting, REPORT, Report, Request,
};
use rustix::net::sockopt::{set_socket_linger, set_tcp_congestion};
use tool_ping::serve::{block, is_patience, read_all};

use super::args::Task;

/// How long a connection may take, and each message of its start.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for data before the time is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);
/// A stream that moves nothing for so long has stalled.
const STALL: Duration = Duration::from_secs(5);
/// What is asked for beyond a phase, so that the client ends the stream.
const BEYOND_MS: u32 = 5_000;
/// A report that is older says nothing of the present rate.
const REPORT_OLD: Duration = Duration::from_secs(1);

/// What a stream has done so far.
#[derive(Debug, Default)]
pub(super) struct Progress {
    /// Bytes that arrived at the receiver.
    received: AtomicU64,
    /// The rate of the last report, for streams from this host.
    rate_bps: AtomicU64,
    reported: Mutex<Option<Instant>>,
    fault: Mutex<Option<String>>,
    ended: AtomicBool,
}

/// The streams of a phase.
pub(super) struct Streams {
    streams: Vec<Stream>,
    stop: Arc<AtomicBool>,
}

struct Stream {
    direction: Direction,
    number: u16,
    progress: Arc<Progress>,
    thread: JoinHandle<()>,
    /// Received at the last reading.
    read: u64,
}

impl Progress {
    fn say(&self, fault: String) {
        let mut said = self.fault.lock().unwrap_or_else(PoisonError::into_inner);
        said.get_or_insert(fault);
    }
}

impl Streams {
    /// Starts streams in the given directions, to last for at least `seconds`.
    ///
    /// # Errors
    /// A thread cannot be started.
    pub(super) fn start(task: &Task, directions: &[Direction], seconds: u16) -> Result<Streams> {
        let mut all = Streams {
            streams: Vec::new(),
            stop: Arc::default(),
        };
        for &direction in directions {
            for number in 1..=task.streams {
                let asked = Asked {
                    to: task.to,
                    token: task.token.clone(),
                    request: Request {
                        direction,
                        duration_ms: u32::from(seconds) * 1_000 + BEYOND_MS,
                        congestion: task.congestion,
                    },
                };
                let progress = Arc::new(Progress::default());
                let (shared, stop) = (Arc::clone(&progress), Arc::clone(&all.stop));
                let thread = std::thread::Builder::new()
                    .name(format!("stream {number}"))
                    .spawn(move || {
                        if let Err(error) = asked.carry(&shared, &stop) {
                            shared.say(format!("{error:#}"));
                        }
                        shared.ended.store(true, Ordering::Relaxed);
                    })?;
                all.streams.push(Stream {
                    direction,
                    number,
                    progress,
                    thread,
                    read: 0,
                });
            }
        }
        Ok(all)
    }

    /// The present rates of each direction's streams, where the last reading was `since` ago.
    pub(super) fn rates(&mut self, direction: Direction, since: Duration) -> Vec<u64> {
        let streams = self.streams.iter_mut();
        let streams = streams.filter(|stream| stream.direction == direction);
        streams.map(|stream| stream.rate(since)).collect()
    }

    /// Whether no stream goes on.
    pub(super) fn have_ended(&self) -> bool {
        let mut streams = self.streams.iter();
        streams.all(|stream| stream.progress.ended.load(Ordering::Relaxed))
    }

    /// Ends all streams, and returns what went wrong with any: what, and with which streams.
    pub(super) fn finish(self) -> Vec<String> {
        self.stop.store(true, Ordering::Relaxed);
        let mut faults: Vec<(String, Vec<String>)> = Vec::new();
        for stream in self.streams {
            let name = format!(
                "{} {}",
                match stream.direction {
                    Direction::Down => "down",
                    Direction::Up => "up",
                },
                stream.number
            );
            if stream.thread.join().is_err() {
                stream.progress.say("its thread panicked".to_owned());
            }
            let mut fault = stream
                .progress
                .fault
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if let Some(fault) = fault.take() {
                match faults.iter_mut().find(|(known, _)| *known == fault) {
                    Some((_, names)) => names.push(name),
                    None => faults.push((fault, vec![name])),
                }
            }
        }
        let said = |(fault, names): (String, Vec<String>)| match names.len() {
            1 => format!("stream {}: {fault}", names[0]),
            _ => format!("streams {}: {fault}", names.join(", ")),
        };
        faults.into_iter().map(said).collect()
    }
}

impl Stream {
    fn rate(&mut self, since: Duration) -> u64 {
        match self.direction {
            Direction::Down => {
                let received = self.progress.received.load(Ordering::Relaxed);
                let new = received - std::mem::replace(&mut self.read, received);
                (new as f64 * 8.0 / since.as_secs_f64()).round() as u64
            }
            Direction::Up => {
                let reported = self.progress.reported.lock();
                let reported = *reported.unwrap_or_else(PoisonError::into_inner);
                match reported.is_some_and(|at| at.elapsed() < REPORT_OLD) {
                    true => self.progress.rate_bps.load(Ordering::Relaxed),
                    false => 0,
                }
            }
        }
    }
}

/// Connects and reads the greeting.
///
/// # Errors
/// The host does not answer, refuses, or something else answers there.
fn greet(to: SocketAddr) -> Result<(TcpStream, Greeting, [u8; GREETING])> {
    let mut stream =
        TcpStream::connect_timeout(&to, PATIENCE).map_err(|error| match error.kind() {
            io::ErrorKind::ConnectionRefused => anyhow!(
                "{to} refuses TCP connections: start `headend ping --responder {} --load` there",
                to.port()
            ),
            io::ErrorKind::TimedOut => anyhow!(
                "{to} does not answer on TCP within {} s",
                PATIENCE.as_secs()
            ),
            _ => anyhow!("{to} cannot be reached: {error}"),
        })?;
    stream.set_nodelay(true)?;
    let mut bytes = [0; GREETING];
    read_all(&mut stream, &mut bytes, Instant::now() + PATIENCE)
        .map_err(|error| closed(to, &error))?;
    let greeting = Greeting::parse(&bytes).with_context(|| to.to_string())?;
    match greeting.refusal {
        Some(refusal) => bail!("{to} refuses to load: {refusal}"),
        None => Ok((stream, greeting, bytes)),
    }
}

fn closed(to: SocketAddr, error: &io::Error) -> anyhow::Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => {
            anyhow!("{to} closed the connection at its start")
        }
        io::ErrorKind::TimedOut => anyhow!("{to} accepts connections, but says nothing"),
        _ => anyhow!("{to}: {error}"),
    }
}

/// Whether the service is there, and grants what the task needs.
///
/// # Errors
/// Why not.
pub(super) fn check(task: &Task) -> Result<()> {
    let (_, greeting, _) = greet(task.to)?;
    let needs = task.streams_at_once();
    if needs > greeting.streams_max {
        bail!(
            "{} serves {} streams to one host, and --streams {} needs {needs}: use fewer, or --load-streams there",
            task.to,
            greeting.streams_max,
            task.streams
        );
    }
    let longest = task
        .phases
        .iter()
        .skip(1)
        .map(|(_, seconds)| *seconds)
        .max();
    let longest_ms = u32::from(longest.unwrap_or(0)) * 1_000;
    if longest_ms > greeting.duration_max_ms {
        bail!(
            "{} loads for at most {} s: use a shorter --seconds, or --load-seconds there",
            task.to,
            greeting.duration_max_ms / 1_000
        );
    }
    if greeting.needs_token && task.token.reveal().is_empty() {
        bail!("{} needs a token: use --token FILE", task.to);
    }
    Ok(())
}

/// One stream to be.
struct Asked {
    to: SocketAddr,
    token: base::Redacted<Vec<u8>>,
    request: Request,
}

impl Asked {
    /// Opens the stream and keeps it busy until it is stopped.
    fn carry(&self, progress: &Progress, stop: &AtomicBool) -> Result<()> {
        let (mut stream, greeting, _) = greet(self.to)?;
        stream.set_write_timeout(Some(PATIENCE))?;
        let request = self.request.emit(&greeting, self.token.reveal());
        stream
            .write_all(&request)
            .map_err(|error| closed(self.to, &error))?;
        let mut bytes = [0; ANSWER];
        read_all(&mut stream, &mut bytes, Instant::now() + PATIENCE)
            .map_err(|error| closed(self.to, &error))?;
        let answer = Answer::parse(&bytes).with_context(|| self.to.to_string())?;
        if let Some(refusal) = answer.refusal {
            bail!("{} refuses to load: {refusal}", self.to);
        }
        let began = Instant::now();
        let done = match self.request.direction {
            Direction::Down => receive(&mut stream, progress, stop),
            Direction::Up => {
                set_congestion(&stream, &self.request.congestion)?;
                send(&mut stream, progress, stop)
            }
        };
        // Nothing of this phase may be left in a queue that the next one measures.
        let _ = set_socket_linger(&stream, Some(Duration::ZERO));
        done.map_err(|error| broken(&error, began))
    }
}

fn set_congestion(stream: &TcpStream, congestion: &Congestion) -> Result<()> {
    let name = congestion.name();
    if name.is_empty() {
        return Ok(());
    }
    set_tcp_congestion(stream, name).with_context(|| {
        format!("this host cannot send with congestion control {name:?}; net.ipv4.tcp_available_congestion_control lists what it has")
    })
}

fn broken(error: &io::Error, began: Instant) -> anyhow::Error {
    let after = began.elapsed().as_secs_f64();
    match error.kind() {
        io::ErrorKind::UnexpectedEof
        | io::ErrorKind::ConnectionReset
        | io::ErrorKind::BrokenPipe => {
            anyhow!("the responder closed the connection after {after:.1} s")
        }
        _ => anyhow!("broken after {after:.1} s: {error}"),
    }
}

/// Notes a stream that moves nothing.
struct Watch {
    moved: Instant,
}

impl Watch {
    fn new() -> Watch {
        Watch {
            moved: Instant::now(),
        }
    }

    fn look(&mut self, has_moved: bool, progress: &Progress) {
        if has_moved {
            self.moved = Instant::now();
        } else if self.moved.elapsed() >= STALL {
            progress.say(format!(
                "stalled: nothing arrived for {} s",
                STALL.as_secs()
            ));
        }
    }
}

fn receive(stream: &mut TcpStream, progress: &Progress, stop: &AtomicBool) -> io::Result<()> {
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let mut buffer = vec![0; 1 << 16];
    let mut watch = Watch::new();
    while !stop.load(Ordering::Relaxed) {
        match stream.read(&mut buffer) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => {
                progress.received.fetch_add(read as u64, Ordering::Relaxed);
                watch.look(true, progress);
            }
            Err(error) if is_patience(&error) => watch.look(false, progress),
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Sends on this thread, and reads reports on another one.
fn send(stream: &mut TcpStream, progress: &Progress, stop: &AtomicBool) -> io::Result<()> {
    stream.set_write_timeout(Some(LOOK_EVERY))?;
    stream.set_read_timeout(Some(LOOK_EVERY))?;
    let mut reports = stream.try_clone()?;
    let broken = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let read = read_reports(&mut reports, progress, || {
                stop.load(Ordering::Relaxed) || broken.load(Ordering::Relaxed)
            });
            // Ends the sender too.
            broken.store(true, Ordering::Relaxed);
            read
        });
        let block = block();
        let mut sent = Ok(());
        while !stop.load(Ordering::Relaxed) && !broken.load(Ordering::Relaxed) {
            match stream.write(&block) {
                Ok(_) => {}
                Err(error) if is_patience(&error) => {}
                Err(error) => {
                    sent = Err(error);
                    break;
                }
            }
        }
        broken.store(true, Ordering::Relaxed);
        let read = reader.join().unwrap_or(Ok(()));
        sent.and(read)
    })
}

fn read_reports(
    stream: &mut TcpStream,
    progress: &Progress,
    is_over: impl Fn() -> bool,
) -> io::Result<()> {
    let (mut bytes, mut filled) = ([0; REPORT], 0);
    let mut before = Report {
        elapsed_us: 0,
        received: 0,
    };
    let mut watch = Watch::new();
    while !is_over() {
        match stream.read(&mut bytes[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(read) => filled += read,
            Err(error) if is_patience(&error) => {}
            Err(error) => return Err(error),
        }
        let mut has_moved = false;
        if filled == REPORT {
            filled = 0;
            let report = Report::parse(&bytes);
            let new = report.received.saturating_sub(before.received);
            let span_us = report.elapsed_us.saturating_sub(before.elapsed_us).max(1);
            let rate = u128::from(new) * 8_000_000 / u128::from(span_us);
            let rate = u64::try_from(rate).unwrap_or(u64::MAX);
            progress.rate_bps.store(rate, Ordering::Relaxed);
            *progress
                .reported
                .lock()
                .unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
            has_moved = new > 0;
            before = report;
        }
        watch.look(has_moved, progress);
    }
    Ok(())
}
