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

/// Packets that may wait in one direction, and be on their way in it.
const PACKETS_MAX: u32 = 16_384;

/// What comes faster than the thread takes it waits in here, in octets.
const RECEIVE_BUFFER: usize = 4 << 20;

/// A box that runs until it is dropped.
#[derive(Debug)]
pub(super) struct Bridge {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<io::Result<Result<(), EngineError>>>>,
}

impl Bridge {
    /// Starts one between two interfaces of `namespace`: `both.up` is for what comes from the first. What leaves a queue
    /// arrives `delay` later. `prepare` may change the engine before.
    ///
    /// # Errors
    /// The interfaces cannot be opened, or the disciplines do not fit together.
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
            // A box of its own would have a processor of its own.
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
    /// What it had ended with before: an interface has vanished, or the system failed.
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
        // Whoever drops it without asking has an error of its own to tell.
        let _ = self.join();
    }
}
