//! No input makes the parser panic, and `--showcmd` loses nothing.

use super::showcmd::assert_round_trip;
use super::*;
use proptest::prelude::*;

fn option() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("rw=randrw".to_owned()),
        Just("thread".to_owned()),
        Just("stonewall=1".to_owned()),
        Just("ioengine=libaio".to_owned()),
        Just("ioengine=null".to_owned()),
        Just("kb_base=1000".to_owned()),
        (1u32..500).prop_map(|number| format!("iodepth={number}")),
        (1u32..500).prop_map(|number| format!("size={number}m")),
        (1u32..64).prop_map(|number| format!("blocksize={number}k")),
        "[a-z '\"$`*?~|&<>()!{}-]{1,12}[a-z]".prop_map(|text| format!("description=a{text}")),
        "[a-z '\"$`*?~|&<>()!{}-]{1,12}[a-z]".prop_map(|text| format!("filename=a{text}")),
    ]
}

fn section() -> impl Strategy<Value = String> {
    (
        prop_oneof![Just("global".to_owned()), "[a-fh-z0-9][a-z0-9 _.'-]{0,8}"],
        proptest::collection::vec(option(), 0..6),
    )
        .prop_map(|(name, options)| format!("[{name}]\n{}\n", options.join("\n")))
}

proptest! {
    #![proptest_config(iolite_testing::properties(256))]

    #[test]
    fn any_words_have_an_answer(words in proptest::collection::vec(
        "(--?)?(name|bs|rw|thread|size|ioengine|output|section|debug|x|v|o|[a-zäß]{0,3})?(=[a-z0-9,:=$*-]{0,6})?",
        0..8,
    )) {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let _ = invoke(&words, "[a]\nbs=4k\n");
    }

    #[test]
    fn any_bytes_have_an_answer(words in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..12), 0..5)) {
        use std::os::unix::ffi::OsStringExt;
        let words: Vec<OsString> = words.into_iter().map(OsString::from_vec).filter(|word| !is_device(word)).collect();
        let _ = invoke_as(&words, "", Name::Iolite);
    }

    #[test]
    fn any_job_file_has_an_answer(
        text in "(\\[[a-z]{0,5}\\]|global|(bs|rw|size|iodepth|thread|ioengine|filename)|=|[a-z0-9,:/;#$%(){}*-]|\n){0,40}"
    ) {
        let _ = invoke(&["-"], &text);
        let _ = invoke(&["--showcmd", "-"], &text);
    }

    #[test]
    fn shown_command_lines_mean_the_same_as_their_files(sections in proptest::collection::vec(section(), 1..5)) {
        let text = format!("{}[last]\n", sections.concat());
        if let Ok(Invocation::Run { .. }) = invoke(&["-"], &text) {
            assert_round_trip(&text);
        }
    }
}

/// A random word could be the name of a file or command.
fn is_device(word: &OsString) -> bool {
    Path::new(word).exists()
}
