//! Rows of a running emulation. It shows its routers with the rows of `bgp`.

use serde::Serialize;

row! {
    /// The progress of an emulation.
    #[derive(Serialize)]
    EmulateProgress<'a> is "emulate.progress/1" as Block {
        /// Emulated time.
        now_s: f64 = [gauge Seconds "emulated time"],
        /// Emulated time at the end of the run.
        run_s: f64 = [gauge Seconds "end of the run"],
        /// Emulated time over real time.
        rate: f64 = [gauge Ratio "speed"],
        /// Established endpoints.
        endpoints_up: u64 = [gauge "endpoints up"],
        /// Endpoints: two per session.
        endpoints: u64 = [gauge "endpoints"],
        /// Sessions lost so far.
        sessions_lost: u64 = [counter "sessions lost"],
        /// Messages sent so far.
        messages: u64 = [counter "messages"],
        /// UPDATEs sent so far.
        updates: u64 = [counter "UPDATEs"],
        /// Steps of events still to come.
        steps_left: usize = [gauge "steps left"],
    }
}

row! {
    /// An event that was injected.
    #[derive(Serialize)]
    EmulateInjected<'a> is "emulate.injected/1" as Own {
        /// The event in words.
        event: String = [text],
        /// Emulated time at which it takes effect.
        at_s: f64 = [gauge Seconds],
    }
}

row! {
    /// The waits of a thread with sockets.
    #[derive(Serialize)]
    EmulateWaits<'a> is "emulate.waits/1" as Table {
        /// Number of the thread, from 1.
        thread: usize = [id "THREAD"],
        /// The system call: epoll or poll.
        poller: &'a str = [text "POLLER"],
        /// Descriptors watched.
        watched: usize = [gauge "WATCHED"],
        /// Waits so far.
        waits: u64 = [counter "WAITS"],
        /// Waits that ended without a ready descriptor.
        empty: u64 = [counter],
        /// Ready descriptors, summed over all waits.
        ready: u64 = [counter "READY"],
        /// Ready descriptors per wait.
        ready_per_wait: f64 = [gauge Ratio "READY PER WAIT"],
        /// Ready descriptors over watched ones.
        ready_to_watched: f64 = [gauge Share],
        /// Waits per second.
        waits_per_s: f64 = [gauge PerSecond "WAITS PER S"],
        /// Time spent waiting.
        waited_s: f64 = [counter Seconds Tenths "IDLE (S)"],
        /// Time spent working.
        busy_s: f64 = [counter Seconds Tenths "BUSY (S)"],
    }
}

row! {
    /// A kind of work of a thread with sockets.
    #[derive(Serialize)]
    EmulateHandler<'a> is "emulate.handler/1" as Table {
        /// Number of the thread, from 1.
        thread: usize = [id "THREAD"],
        /// The handler's name.
        name: &'a str = [id text "HANDLER"],
        /// Calls so far.
        calls: u64 = [counter "CALLS"],
        /// Time of all calls.
        total_us: f64 = [counter Micros "TOTAL (US)"],
        /// Mean time of a call.
        mean_us: f64 = [gauge Micros "MEAN (US)"],
        /// Time of the longest call.
        longest_us: f64 = [gauge Micros "LONGEST (US)"],
    }
}
