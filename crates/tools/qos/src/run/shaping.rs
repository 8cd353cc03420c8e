//! The active policy: its rows, and its reload.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use qos::policy::Policy;
use qos::tree::Spec;
use qos::units::Rate;
use shaper::{Control, Snapshot};

use super::hosts::Hosts;
use crate::check::Examined;
use crate::rows::{self, RateChange, Verb};
use control::reply::{self, Code, Refusal};
use control::request;
use control::rows::{QosNodeRow, QosRate, QosReloaded, QosRun};

/// Minimum and maximum buffer of one direction in packets.
const ROOM_MIN: u32 = 4_096;
const ROOM_MAX: u32 = 65_536;

/// Buffer slots per direction for packets that a queue accepts before it drops others for them.
const ROOM_MORE: u32 = 64;

/// For how long a snapshot is reused, so that frequent requests do not slow the engine down.
const FRESH: Duration = Duration::from_millis(20);

/// Number of packet slots that the queues of `spec` can fill.
pub(super) fn room(spec: &Spec) -> u32 {
    spec.packets_max()
        .saturating_add(ROOM_MORE)
        .clamp(ROOM_MIN, ROOM_MAX)
}

/// The active policy.
pub(super) struct Shaping {
    policy: Policy,
    /// The rates in the file, up and down.
    file_bps: [Option<u64>; 2],
    hosts: Hosts,
    file: PathBuf,
    interfaces: [String; 2],
    engine: Control,
    /// Buffer in packets, up and down, allocated for the first policy.
    room: [u32; 2],
    started: Instant,
    loaded: Instant,
    reloads: u64,
    last: Option<(Instant, Snapshot)>,
}

impl Shaping {
    pub(super) fn new(
        policy: Policy,
        file: PathBuf,
        interfaces: [&str; 2],
        engine: Control,
    ) -> Self {
        let now = Instant::now();
        Self {
            room: [policy.up_spec(), policy.down_spec()].map(|spec| room(&spec)),
            file_bps: [policy.up_bps(), policy.down_bps()],
            hosts: Hosts::default(),
            policy,
            file,
            interfaces: interfaces.map(str::to_owned),
            engine,
            started: now,
            loaded: now,
            reloads: 0,
            last: None,
        }
    }

    /// The warning for a policy file that a reload could not read without privileges.
    pub(super) fn is_readable_still(&self) -> Option<String> {
        let error = std::fs::File::open(&self.file).err()?;
        let file = self.file.display();
        Some(format!(
            "{file}: cannot be read without privileges: {error}; a reload will fail"
        ))
    }

    /// Answers one request line of a client.
    pub(super) fn answer_at_once(&mut self, line: &[u8], out: &mut Vec<u8>) {
        let request = match request::parse::<Verb>(line) {
            Ok(request) => request,
            Err((id, refusal)) => return reply::refused(out, id, &refusal),
        };
        let id = request.id;
        let refused = |message: String| Refusal::new(Code::Refused, message);
        let done = match request.what {
            Verb::Show(_) => self
                .show(id, out)
                .map_err(|error| refused(error.to_string())),
            Verb::Reload(_) => self.reload_and_say().map_err(refused).map(|reloaded| {
                reply::row(out, id, &reloaded);
                reply::end(out, id, 1);
            }),
            Verb::Rate(RateChange {
                up_bps: None,
                down_bps: None,
            }) => Err(Refusal::new(
                Code::BadRequest,
                "give up_bps, down_bps or both",
            )),
            Verb::Rate(change) => self.change_rate(change).map_err(refused).map(|rate| {
                reply::row(out, id, &rate);
                reply::end(out, id, 1);
            }),
            Verb::Hosts(asked) => self
                .hosts
                .show(&self.engine, asked, (id, out))
                .map_err(|error| refused(error.to_string())),
        };
        if let Err(refusal) = done {
            reply::refused(out, id, &refusal);
        }
    }

    fn show(&mut self, id: u64, out: &mut Vec<u8>) -> Result<(), shaper::ControlError> {
        let now = Instant::now();
        let is_fresh = |taken: Instant| now.duration_since(taken) < FRESH;
        let last = self.last.take().filter(|(taken, _)| is_fresh(*taken));
        let (taken, snapshot) = match last {
            Some(last) => last,
            None => (now, self.engine.snapshot()?),
        };
        let mut run = self.told(&snapshot);
        let nodes: Vec<_> = [&mut run.up, &mut run.down]
            .into_iter()
            .flat_map(|way| std::mem::take(&mut way.nodes))
            .collect();
        reply::row(out, id, &run);
        let mut rows = 1;
        for node in nodes {
            let row = QosNodeRow {
                schema: QosNodeRow::SCHEMA.to_owned(),
                node,
            };
            reply::row(out, id, &row);
            rows += 1;
        }
        reply::end(out, id, rows);
        self.last = Some((taken, snapshot));
        Ok(())
    }

    fn told(&self, snapshot: &Snapshot) -> QosRun {
        let [lan, wan] = &self.interfaces;
        QosRun {
            schema: QosRun::SCHEMA.to_owned(),
            pid: std::process::id(),
            policy: self.file.display().to_string(),
            policy_age_s: tenths(self.loaded.elapsed()),
            reloads: self.reloads,
            uptime_s: tenths(self.started.elapsed()),
            taken_ns: snapshot.taken.as_nanos(),
            interval_s: None,
            up: rows::direction(&snapshot.up, "up", &self.policy, self.file_bps[0]),
            down: rows::direction(&snapshot.down, "down", &self.policy, self.file_bps[1]),
            lan: rows::port(lan, snapshot, 0),
            wan: rows::port(wan, snapshot, 1),
            frames: snapshot.frames,
            frames_max: snapshot.frames_max,
        }
    }

    /// Reloads the policy, and reports the result on standard error.
    ///
    /// # Errors
    /// The faults, one per line. The old policy stays active.
    pub(super) fn reload_and_say(&mut self) -> Result<QosReloaded, String> {
        let file = self.file.display().to_string();
        let done = self.reload();
        match &done {
            Ok(reloaded) => {
                for line in &reloaded.advice {
                    eprintln!("{line}");
                }
                eprintln!("headend qos: {file} is in force");
            }
            Err(faults) => eprintln!("{faults}\nheadend qos: the policy is kept as it was"),
        }
        done
    }

    /// Changes rates of the policy in force, until the next reload.
    fn change_rate(&mut self, change: RateChange) -> Result<QosRate, String> {
        let RateChange { up_bps, down_bps } = change;
        let changed = self.policy.with_rates([up_bps, down_bps]);
        let changed = changed.map_err(|error| error.to_string())?;
        let mut advice = changed.rate_advice();
        self.put_in_force(changed, &mut advice)?;
        let (up_bps, down_bps) = (self.policy.up_bps(), self.policy.down_bps());
        let rate =
            |rate: Option<u64>| rate.map_or("not shaped".to_owned(), |rate| Rate(rate).to_string());
        let (up, down) = (rate(up_bps), rate(down_bps));
        eprintln!("headend qos: up {up}, down {down} by request, until the next reload");
        Ok(QosRate {
            schema: QosRate::SCHEMA.to_owned(),
            up_bps,
            down_bps,
            advice,
        })
    }

    /// Replaces the queues by those of `policy`, with all waiting packets.
    fn put_in_force(&mut self, policy: Policy, advice: &mut Vec<String>) -> Result<(), String> {
        let file = self.file.display();
        let specs = [policy.up_spec(), policy.down_spec()];
        for (name, (spec, room_now)) in ["up", "down"].iter().zip(specs.iter().zip(self.room)) {
            let wanted = room(spec);
            if wanted > room_now {
                advice.push(format!(
                    "{file}: its queues {name} may hold {wanted} packets, and there is room for {room_now} since the \
                     start; start anew (advice)"
                ));
            }
        }
        let overhead = policy.overhead();
        let both = specs.map(|spec| (spec, overhead));
        self.engine
            .replace_both(both)
            .map_err(|error| format!("{file}: {error}"))?;
        self.policy = policy;
        self.last = None;
        Ok(())
    }

    fn reload(&mut self) -> Result<QosReloaded, String> {
        let mut examined = Examined::read(&self.file).map_err(|error| format!("{error:#}"))?;
        let [lan, wan] = &self.interfaces;
        // If an interface has just vanished, the engine ends and reports it.
        let _ = examined.look_at(Some(lan), Some(wan));
        let faults = examined.faults();
        let mut advice = examined.advice();
        let Some(policy) = examined.policy().filter(|_| faults.is_empty()) else {
            return Err(faults.join("\n"));
        };
        self.put_in_force(policy, &mut advice)?;
        self.file_bps = [self.policy.up_bps(), self.policy.down_bps()];
        self.loaded = Instant::now();
        self.reloads += 1;
        Ok(QosReloaded {
            schema: QosReloaded::SCHEMA.to_owned(),
            file: self.file.display().to_string(),
            advice,
        })
    }
}

fn tenths(span: Duration) -> f64 {
    (span.as_secs_f64() * 10.0).round() / 10.0
}

#[cfg(test)]
mod tests {
    use qos::fifo::Limit;

    use super::*;

    fn spec(text: &str) -> Spec {
        Policy::parse(text).expect("a policy").0.up_spec()
    }

    #[test]
    fn there_is_room_for_what_all_queues_may_hold() {
        let fifo = "[link]\nup = \"9mbit\"\n[shape]\ntemplate = \"pfifo\"\nlimit = 5000\n";
        assert_eq!(room(&spec(fifo)), 5_064);
        let home = "[link]\nup = \"9mbit\"\n[[first]]\nport = 22\n";
        assert_eq!(room(&spec(home)), 2 * 10_240 + 64);
        assert_eq!(room(&Spec::Fifo(Limit::Packets(1))), ROOM_MIN);
        assert_eq!(room(&Spec::Fifo(Limit::Bytes(u64::MAX))), ROOM_MAX);
    }
}
