use super::*;
use crate::generate::Profile;

/// Returns a small file with every section.
pub(crate) fn sample() -> String {
    let mut text = String::from("-scale\n100\n#\n-prots\n");
    let row = |protocol: u8, share: f64, class: &str| {
        let index = PortClass::from_seed_name(class).unwrap().index();
        let shares: Vec<String> = (0..PORT_CLASSES)
            .map(|i| if i == index { "1.0" } else { "0.0" }.to_owned())
            .collect();
        format!("{protocol}\t{share}\t{}\n", shares.join("\t"))
    };
    text += &row(0, 0.25, "wc_wc");
    text += &row(6, 0.75, "wc_em");
    text += "#\n-flags\n0\t0x0000/0x0000,1.0\n6\t0x0000/0x0200,0.5\t0x1000/0x1000,0.5\n#\n";
    text += "-extra\n1\n6\t5,0.5\n#\n-spar\n#\n-spem\n#\n-dpar\n0.5\t100:200\n#\n";
    text += "-dpem\n0.5\t80:80\n0.5\t443:443\n#\n";
    for class in PortClass::ALL {
        text += &format!("-{}\n", class.seed_name());
        if class.seed_name() == "wc_wc" {
            text += "0,0.5\t0,1.0\n32,0.5\t0,0.25\t32,0.75\n";
        } else if class.seed_name() == "wc_em" {
            text += "56,1.0\t24,0.5\t32,0.5\n";
        }
        text += "#\n";
    }
    for side in ["s", "d"] {
        text += &format!("-{side}nest\n3\n#\n-{side}skew\n");
        for level in 0..=32 {
            text += &format!("{level}\t0.5\t0.5\t0.25\n");
        }
        text += "#\n";
    }
    text + "-pcorr\n1\t0.5\n2\t0.25\n#\n"
}

#[test]
fn every_section_is_read() {
    let loaded = SeedFile::parse("s", &sample(), &ReadOptions::default()).unwrap();
    let seed = loaded.value;
    assert_eq!(seed.scale(), 100);
    assert_eq!(seed.flags()[1].1[0].mask, 0x200);
    assert_eq!(seed.extra()[0].1[0].values, 5);
    let parts = Profile::from_seed_file("sample", &seed)
        .unwrap()
        .into_parts();
    assert_eq!(parts.protocols[0].protocol, None);
    assert_eq!(parts.protocols[1].protocol, Some(6));
    assert_eq!(parts.destination_ports.ranges[0].high, 200);
    assert_eq!(parts.pairs[0].len(), 3);
    assert_eq!(parts.pairs[0][1].destination, 32);
    assert!((parts.pairs[0][2].share - 0.375).abs() < 1e-12);
    assert_eq!((parts.source.nesting, parts.destination.nesting), (3, 3));
    assert!((parts.correlation[2] - 0.25).abs() < 1e-12);
}

#[test]
fn mistakes_are_found_with_their_place() {
    // The replaced text, the replacement, the position and a part of the message.
    let cases = [
        ("-scale\n100", "-scale\nmany", "s:2:1: `many`", "at least 1"),
        ("-scale\n100", "-scales\n100", "s:1:1:", "-scale"),
        ("0.5\t443:443", "0.5\t443:80", "s:25:5:", "lower port first"),
        ("0.5\t443:443", "0.5\t443", "s:25:5:", "low:high"),
        ("0.5\t443:443", "1.5\t443:443", "s:25:1: `1.5`", "0 to 1"),
        ("0.5\t443:443", "0.5\t443:443\t9", "s:25:1: 3 fields", "2"),
        (
            "56,1.0\t24,0.5",
            "56,1.0\t23,0.5",
            ":8: `23`",
            "from 24 to 32",
        ),
        ("56,1.0\t24,0.5\t32,0.5", "56,1.0", "without", "after it"),
        ("0x0200,0.5", "200,0.5", "s:10:3:", "0x0000/0x0200,0.25"),
        ("-snest\n3", "-snest\n-3", "`-3`", "nested"),
        ("2\t0.25", "33\t0.25", "`33`", "0 to 32"),
        (
            "-pcorr",
            "#\nlost\n-pcorr",
            "outside of a section",
            "-scale",
        ),
        (
            "-dpar\n",
            "-dpem\n1\t1:1\n#\n-dpar\n",
            "second section",
            "once",
        ),
        ("56,1.0\t24,0.5\t32,0.5\n", "", "wc_em is used", "`-wc_em`"),
        ("6\t0.75", "0\t0.75", "second time", "once"),
        (
            "0.5\t80:80\n0.5\t443:443\n",
            "",
            "`-dpem` is empty",
            "lines under",
        ),
    ];
    for (old, new, place, expected) in cases {
        let text = sample().replacen(old, new, 1);
        assert_ne!(text, sample(), "{old:?} is not there");
        let error = SeedFile::parse("s", &text, &ReadOptions::default()).expect_err(new);
        let message = error.to_string();
        assert!(message.contains(place), "{message} lacks {place}");
        assert!(message.contains(expected), "{message} lacks {expected}");
    }
}

#[test]
fn what_is_missing_is_said() {
    let error = SeedFile::parse("s", "", &ReadOptions::default()).unwrap_err();
    let message = error.to_string();
    for section in ["-scale", "-prots", "-sskew", "-dskew"] {
        assert!(message.contains(section), "{message}");
    }
    let skip = ReadOptions {
        skip_bad: true,
        ..ReadOptions::default()
    };
    assert!(SeedFile::parse("s", "#", &skip).is_err());
    assert!(SeedFile::parse("s", "-scale\n#\n-prots\n#\n-sskew\n#\n-dskew\n#", &skip).is_err());
}

#[test]
fn twenty_problems_are_listed_and_all_counted() {
    let mut text = sample();
    for _ in 0..25 {
        text += "nonsense\n";
    }
    match SeedFile::parse("s", &text, &ReadOptions::default()) {
        Err(ReadError::Bad(problems)) => {
            assert_eq!((problems.shown().len(), problems.total()), (20, 25));
        }
        other => panic!("{other:?}"),
    }
    let skip = ReadOptions {
        skip_bad: true,
        ..ReadOptions::default()
    };
    let loaded = SeedFile::parse("s", &text, &skip).unwrap();
    assert_eq!(loaded.skipped.total(), 25);
}

proptest::proptest! {
    #[test]
    fn no_text_makes_the_reader_panic(
        cut in 0usize..3000,
        junk in "[ -~\t\n]{0,60}",
        keep in 0usize..3000,
    ) {
        let text = sample();
        let (cut, keep) = (cut.min(text.len()), keep.min(text.len()));
        let spoilt = format!("{}{junk}{}", &text[..cut], &text[keep..]);
        let _ = SeedFile::parse("s", &spoilt, &ReadOptions::default());
    }
}
