//! A box on the line: an engine of `shaper` between two interfaces, on a thread of its own.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use base::Duration;
use reactor::namespace::Namespace;
use reactor::port::{Port, PortError, PortOptions};
use reactor::urgency;
use shaper::{Direction, Engine, EngineError};

use super::treatment::Both;

/// Limit of packets that are queued or in flight in one direction.
const PACKETS_MAX: u32 = 16_384;

/// Receive buffer in bytes, for bursts that arrive faster than the thread reads.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A box that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Bridge {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Result<(), EngineError>>>>,
}

impl Bridge {
    /// Starts a box between two interfaces of `namespace`. `both.up` shapes packets that arrive at
    /// the first one. A packet that leaves a queue arrives `delay` later. `prepare` may change the
    /// engine before it starts.
    ///
    /// # Errors
    /// The interfaces cannot be opened, or the disciplines cannot be combined.
    pub(super) fn start(
        namespace: &Namespace,
        (lan, wan): (&str, &str),
        (both, seed): (&Both, u64),
        delay: Duration,
        prepare: impl FnOnce(&mut Engine),
    ) -> Result<Self, EngineError> {
        let options = PortOptions {
            recv_buffer_bytes: Some(RECEIVE_BUFFER),
            bypass_queue: true,
            ..PortOptions::default()
        };
        let ports = namespace.run(|| -> Result<_, PortError> {
            Ok([Port::open(lan, &options)?, Port::open(wan, &options)?])
        })?;
        let [lan_port, wan_port] = ports?;
        let direction = |spec: &qos::tree::Spec| Direction {
            spec: spec.clone(),
            overhead: both.overhead,
            delay,
            packets_max: PACKETS_MAX,
            seed,
        };
        let (up, down) = (direction(&both.up), direction(&both.down));
        let mut engine = Engine::new(lan_port, wan_port, &up, &down)?;
        prepare(&mut engine);
        let stop = Arc::new(AtomicBool::new(false));
        let stops = Arc::clone(&stop);
        let thread = namespace.spawn(lan, move || {
            // The thread gets a higher priority, since a real box would have a processor of its
            // own.
            urgency::hasten(true);
            engine.run(&stops)
        })?;
        Ok(Self {
            stop,
            thread: Some(thread),
        })
    }

    /// Ends it.
    ///
    /// # Errors
    /// The error with which it had already ended: an interface has vanished, or a system call
    /// failed.
    pub(super) fn end(mut self) -> Result<(), EngineError> {
        match self.join() {
            None => Ok(()),
            Some(Ok(ended)) => ended?,
            Some(Err(panic)) => std::panic::resume_unwind(panic),
        }
    }

    fn join(&mut self) -> Option<std::thread::Result<io::Result<Result<(), EngineError>>>> {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.take().map(JoinHandle::join)
    }
}

impl Drop for Bridge {
    fn drop(&mut self) {
        // A caller that drops it without `end` has an error of its own to report.
        let _ = self.join();
    }
}
