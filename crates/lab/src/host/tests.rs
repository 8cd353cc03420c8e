use super::*;

const STAT: [&str; 2] = [
    "cpu  0 0 0 0\ncpu0 100 0 100 800 0 0 0 0 0 0\ncpu1 100 0 0 900 0 0 0 0 0 0\nprocs_running 5\n",
    "cpu  0 0 0 0\ncpu0 195 0 100 800 0 0 0 5 0 0\ncpu1 110 0 0 990 0 0 0 0 0 0\nprocs_running 4\n",
];

fn reading(files: &[(&'static str, &str)]) -> Reading {
    let files = files.iter().map(|(name, text)| (*name, (*text).to_owned()));
    Reading {
        files: files.collect(),
        ..Reading::default()
    }
}

/// The row of a figure, between two texts of one file that are a second apart.
fn figure(file: &'static str, texts: [&str; 2], unit: &str) -> Row {
    let [before, after] = texts.map(|text| reading(&[(file, text)]));
    found(&rows(&before, &after, 1.0), unit)
}

fn found(rows: &[Row], unit: &str) -> Row {
    let mut rows = rows.iter();
    rows.find(|row| row.unit.contains(unit))
        .cloned()
        .expect(unit)
}

#[test]
fn a_busy_cpu_is_named_and_threads_that_wait_saturate_it() {
    let busiest = figure("/proc/stat", STAT, "the busiest");
    assert_eq!((&*busiest.item, busiest.value), ("cpu0", Some(95.0)));
    assert_eq!(busiest.verdict, Verdict::High);
    let all = figure("/proc/stat", STAT, "all CPUs");
    assert_eq!((all.value, all.verdict), (Some(52.5), Verdict::Ok));
    // Four and three besides this one on two CPUs: one waited at both readings.
    let ready = figure("/proc/stat", STAT, "threads ready");
    assert_eq!(
        (ready.value, ready.verdict),
        (Some(1.0), Verdict::Saturated)
    );
    let steal = figure("/proc/stat", STAT, "stolen");
    assert_eq!((steal.value, steal.verdict), (Some(2.5), Verdict::Ok));
}

#[test]
fn pressure_is_the_share_of_the_interval() {
    let texts = [
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1000000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
        "some avg10=0.00 avg60=0.00 avg300=0.00 total=1250000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=7\n",
    ];
    let row = figure("/proc/pressure/cpu", texts, "waited for a CPU");
    assert_eq!((row.value, row.verdict), (Some(25.0), Verdict::Saturated));
    assert_eq!(row.shown_by, "/proc/pressure/cpu");
}

#[test]
fn memory_swaps_and_kills_are_counted() {
    let info = "MemTotal:       1000 kB\nMemFree:  10 kB\nMemAvailable:    80 kB\n";
    let used = figure("/proc/meminfo", [info; 2], "% used");
    assert_eq!((used.value, used.verdict), (Some(92.0), Verdict::High));
    let texts = [
        "pswpin 5\npswpout 6\noom_kill 1\n",
        "pswpin 6\npswpout 8\noom_kill 2\n",
    ];
    let swap = figure("/proc/vmstat", texts, "swapped");
    assert_eq!((swap.value, swap.verdict), (Some(3.0), Verdict::Saturated));
    let killed = figure("/proc/vmstat", texts, "killed");
    assert_eq!(
        (killed.value, killed.verdict),
        (Some(1.0), Verdict::Failing)
    );
}

#[test]
fn the_worst_interface_is_named() {
    let head = "Inter-|   Receive  |  Transmit\n face |bytes packets errs drop fifo frame compressed multicast|bytes\n";
    let line = |name: &str, bytes: u64, errors: u64, drops: u64| {
        // Received frames that nothing listens to (900 of them) are no sign of saturation.
        let unheard = bytes.min(900);
        format!("  {name}: {bytes} 1 {errors} {unheard} 0 0 0 0 5 1 0 {drops} 0 0 0 0\n")
    };
    let texts = [
        format!("{head}{}{}", line("lo", 0, 0, 0), line("eth0", 0, 1, 2)),
        format!(
            "{head}{}{}",
            line("lo", 0, 0, 0),
            line("eth0", 100_000_000, 1, 9)
        ),
    ];
    let [mut before, mut after] = texts.map(|text| reading(&[("/proc/net/dev", &text)]));
    for reading in [&mut before, &mut after] {
        reading.speeds.insert("eth0".to_owned(), 1_000_000_000);
        reading.missed.insert("eth0".to_owned(), 4);
    }
    after.missed.insert("eth0".to_owned(), 7);
    let rows = rows(&before, &after, 1.0);
    let used = found(&rows, "% of its speed");
    assert_eq!(
        (&*used.item, used.value, used.verdict),
        ("eth0", Some(80.0), Verdict::High)
    );
    let drops = found(&rows, "frames dropped by full rings");
    assert_eq!(
        (&*drops.item, drops.value, drops.verdict),
        ("eth0", Some(10.0), Verdict::Saturated)
    );
    assert_eq!(found(&rows, "frames with errors").verdict, Verdict::Ok);
}

#[test]
fn a_queue_that_stays_full_is_saturated() {
    let of = |qlen: u32, drops: u32| {
        format!(
            "[{{\"kind\":\"tbf\",\"handle\":\"1:\",\"dev\":\"eth0\",\"root\":true,\"bytes\":5,\"drops\":{drops},\"qlen\":{qlen}}},{{\"kind\":\"noqueue\",\"handle\":\"0:\",\"dev\":\"lo\"}}]"
        )
    };
    let of = |qlen, drops| Reading {
        queues: Some(of(qlen, drops)),
        ..Reading::default()
    };
    let rows = rows(&of(30, 5), &of(20, 6), 1.0);
    let waiting = found(&rows, "packets that wait");
    assert_eq!(
        (&*waiting.item, waiting.value),
        ("eth0 tbf 1 root", Some(20.0))
    );
    assert_eq!(waiting.verdict, Verdict::Saturated);
    assert_eq!(found(&rows, "the queue dropped").value, Some(1.0));
    // Queues that the kernel made below mq differ in their parents only.
    let children = |drops| {
        let one = |parent: &str, drops: u32| {
            format!(
                "{{\"kind\":\"fq_codel\",\"handle\":\"0:\",\"dev\":\"eth0\",\"parent\":\"{parent}\",\"drops\":{drops},\"qlen\":0}}"
            )
        };
        let text = format!("[{},{}]", one(":1", 0), one(":2", drops));
        Reading {
            queues: Some(text),
            ..Reading::default()
        }
    };
    let same = super::rows(&children(500), &children(500), 1.0);
    assert_eq!(found(&same, "the queue dropped").value, Some(0.0));
    let more = super::rows(&children(500), &children(503), 1.0);
    let dropped = found(&more, "the queue dropped");
    assert_eq!(
        (&*dropped.item, dropped.value),
        ("eth0 fq_codel 0 :2", Some(3.0))
    );
    let moment = super::rows(&of(30, 5), &of(0, 5), 1.0);
    assert_eq!(found(&moment, "packets that wait").verdict, Verdict::Ok);
}

#[test]
fn sockets_listeners_and_tables_are_counted() {
    let udp = |drops: u32| {
        format!(
            "  sl  local_address rem_address   st tx_queue rx_queue\n 9: 0100007F:0035 00000000:0000 07 00000000:00000A00 00:00000000 00000000 0 0 7 2 000000 {drops}\n"
        )
    };
    let now = figure("/proc/net/udp", [&udp(3), &udp(5)], "by open sockets");
    assert_eq!((now.value, now.verdict), (Some(2.0), Verdict::Saturated));
    assert_eq!(read::sockets(&udp(3)).waiting, 0xa00);
    let names = "TcpExt: SyncookiesSent ListenOverflows ListenDrops\nTcpExt: 0 ";
    let netstat = [format!("{names}4 4\n"), format!("{names}4 9\n")];
    let listen = figure(
        "/proc/net/netstat",
        [&netstat[0], &netstat[1]],
        "listen queue",
    );
    assert_eq!((listen.value, listen.verdict), (Some(0.0), Verdict::Ok));
    let files = figure("/proc/sys/fs/file-nr", ["900\t0\t1000\n"; 2], "open files");
    assert_eq!((files.value, files.verdict), (Some(90.0), Verdict::High));
    let stat = |drop: &str| {
        format!("entries  insert_failed drop early_drop\n00000001  00000000 {drop} 00000000\n")
    };
    let refused = figure(
        "/proc/net/stat/nf_conntrack",
        [&stat("0000000f"), &stat("00000010")],
        "refused, or others evicted",
    );
    assert_eq!(
        (refused.value, refused.verdict),
        (Some(1.0), Verdict::Saturated)
    );
}

#[test]
fn a_disk_is_judged_by_its_time_and_its_queue() {
    let of = |busy: u32, waited: u32| {
        format!(
            " 254 0 vda 9 0 9 9 9 0 9 9 0 {busy} {waited}\n 7 0 loop0 9 0 9 9 9 0 9 9 0 {busy} {waited}\n"
        )
    };
    let texts = [&*of(1_000, 1_000), &*of(1_900, 5_000)];
    let busy = figure("/proc/diskstats", texts, "of the time busy");
    // The loop's row comes first; it has the unit too.
    assert_eq!(busy.resource, "disk");
    assert_eq!(
        (&*busy.item, busy.value, busy.verdict),
        ("vda", Some(90.0), Verdict::High)
    );
    let queue = figure("/proc/diskstats", texts, "on average");
    assert_eq!(
        (queue.value, queue.verdict),
        (Some(4.0), Verdict::Saturated)
    );
}

#[test]
fn the_daemons_loop_is_a_resource() {
    let of = |busy| Reading {
        loop_busy_s: Some(busy),
        ..Reading::default()
    };
    let rows = rows(&of(10.0), &of(11.5), 2.0);
    let row = rows
        .iter()
        .find(|row| row.resource == "daemon loop")
        .expect("a row");
    assert_eq!((row.value, row.verdict), (Some(75.0), Verdict::High));
}

#[test]
fn what_a_host_does_not_have_is_unknown() {
    let rows = rows(&Reading::default(), &Reading::default(), 0.0);
    assert!(rows.len() > 25);
    for row in rows {
        assert_eq!(row.verdict, Verdict::Unknown, "{row:?}");
        assert!(!row.shown_by.is_empty() && !row.source.is_empty());
    }
}

#[test]
fn the_process_that_is_nearest_to_its_limit_is_named() {
    let limits = "Limit                     Soft Limit           Hard Limit           Units     \n\
                  Max file size             unlimited            unlimited            bytes     \n\
                  Max open files            1024                 524288               files     \n";
    assert_eq!(read::open_files_limit(limits), Some(1_024));
    assert_eq!(read::open_files_limit("Max open files unlimited 5"), None);
    let process = |name: &str, open, limit| Process {
        name: name.to_owned(),
        open,
        limit,
    };
    let after = Reading {
        processes: vec![process("big (3)", 900, 10_000), process("near (7)", 41, 50)],
        ..Reading::default()
    };
    let row = found(&rows(&Reading::default(), &after, 1.0), "own limit");
    assert_eq!((&*row.item, row.value), ("near (7)", Some(82.0)));
    assert_eq!(row.verdict, Verdict::High);
}
