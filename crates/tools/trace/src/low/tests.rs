use super::*;

fn parse(line: &str) -> Result<LowArgs, Usage> {
    let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
    LowArgs::parse(&words)
}

fn good(line: &str) -> LowArgs {
    parse(line).unwrap_or_else(|why| panic!("{line}: {why:?}"))
}

#[test]
fn letters_come_in_clusters() {
    let args = good("-lnrW file");
    assert!(!args.brief && args.rtt && args.owin && !args.host_names);
    assert_eq!(args.files, [PathBuf::from("file")]);
}

#[test]
fn values_are_attached_or_follow() {
    let args = good("-A20 -o3-5 -B 7 -lE9 -o 8 f");
    assert_eq!((args.average, args.first, args.last), (20, 7, 9));
    assert!(!args.brief);
    let chosen: Vec<u64> = (0..10).filter(|&number| args.only.has(number)).collect();
    assert_eq!(chosen, [3, 4, 5, 8]);
    assert_eq!(good("-fsegs>10 f").filter.as_deref(), Some("segs>10"));
    assert_eq!(good("-Oout.pcap f").save, Some(PathBuf::from("out.pcap")));
}

#[test]
fn ignoring_an_interface_captures_it() {
    let args = good("-ilo --duration 1m");
    assert_eq!(
        (args.live.as_deref(), args.duration),
        (Some("lo"), Some(60_000_000_000))
    );
    assert_eq!(good("-i any").live.as_deref(), Some("any"));
    let args = good("-i3-5 f");
    assert!(args.live.is_none() && args.ignored.has(4));
    assert!(parse("-ino-such-interface f").is_err());
}

#[test]
fn plus_reverses_switches() {
    assert!(good("-l +l f").brief);
    assert!(good("+n f").host_names && !good("+n -n f").port_names);
    assert!(!good("-C +C f").colour && good("-M +M f").colour);
    assert!(!good("+t f").progress);
    assert!(!good("-zxy +zx f").time_from_zero && good("-zxy +zx f").sequence_from_zero);
    assert!(parse("+A20 f").is_err());
}

#[test]
fn axes_are_counted_from_zero_as_asked() {
    let zero = |line: &str| (good(line).time_from_zero, good(line).sequence_from_zero);
    assert_eq!(zero("-z f"), (true, false));
    assert_eq!(zero("-zx f"), (true, false));
    assert_eq!(zero("-zy f"), (false, true));
    assert_eq!(zero("-Szyx f"), (true, true));
    assert!(parse("-zl f").is_err());
}

#[test]
fn long_names_may_be_cut_and_reversed() {
    assert!(good("--csv f").csv && good("--cs f").csv && !good("--csv --nocsv f").csv);
    assert!(good("--dump f").print_data);
    assert!(!good("--noshowsacks f").show.sacks && good("--showrtt f").show.rtt_dongles);
    assert!(good("--res_a f").host_names && !good("--res_addr --nores_addr f").host_names);
    assert_eq!(good("--output_d=x f").output_dir, Some(PathBuf::from("x")));
    assert_eq!(
        good("--output-prefix x f").output_prefix.as_deref(),
        Some("x")
    );
    assert_eq!(good("--sv=; f").separator.as_deref(), Some(";"));
    assert!(good("--iTCP3 --oudp2-4 f").ignored.has(3));
    assert!(good("--oudp2-4 f").only_udp.has(4));
}

#[test]
fn our_flags_do_not_make_prefixes_of_theirs_ambiguous() {
    // `--p` is --print_seq_zero there, and --parquet, --part here.
    assert!(good("--p f").relative);
    assert!(good("--nop f").files.len() == 1);
    assert_eq!(good("--mem 1G f").memory, 1 << 30);
    assert_eq!(good("--threads=3 f").threads, Some(3));
}

#[test]
fn what_is_wrong_is_said() {
    for (line, said) in [
        ("-K f", "-K is not a flag"),
        ("-lxtraffic f", "modules"),
        ("--show f", "may mean --showsacks"),
        ("--nothing f", "not a flag"),
        ("--csv=1 f", "--csv takes no value"),
        ("--part 9/8 f", "not a part"),
        ("-A0 f", "above 0"),
        ("-o5-3 f", "nor a range"),
        ("--threads", "needs a number"),
        ("-f", "needs a filter"),
        ("-onosuchfile f", "cannot read nosuchfile"),
    ] {
        let Err(Usage(why)) = parse(line) else {
            panic!("taken: {line}");
        };
        assert!(why.contains(said), "{line}: {why}");
    }
}

#[test]
fn flags_may_follow_files_and_two_hyphens_end_them() {
    let args = good("f -l - -- -l");
    assert!(!args.brief);
    assert_eq!(args.files, ["f", "-", "-l"].map(PathBuf::from));
}

#[test]
fn help_has_topics() {
    assert_eq!(good("--help").help, Some(Help::Arguments));
    assert_eq!(good("-hfilter").help, Some(Help::Filter));
    assert_eq!(good("-hargs").help, Some(Help::Arguments));
    assert_eq!(good("-v").help, Some(Help::Version));
    assert_eq!(good("--version").help, Some(Help::Version));
}

#[test]
fn every_flag_has_a_name_and_a_help_and_no_two_the_same() {
    for (at, flag) in flags::FLAGS.iter().enumerate() {
        assert!(flag.letter != '\0' || !flag.long.is_empty());
        assert!(!flag.help.is_empty(), "{}{}", flag.letter, flag.long);
        for other in &flags::FLAGS[at + 1..] {
            assert!(flag.letter == '\0' || flag.letter != other.letter);
            assert!(flag.long.is_empty() || flag.long != other.long);
        }
    }
}
