//! Tests that a table of rules is parsed to the same rules that were written, and that invalid tables are refused.

use twindex_corpus::urls::{COLUMNS, Learner, Options, Rules};

#[test]
fn rules_read_from_a_table_give_the_same_normal_forms() {
    let mut learner = Learner::new(Options::default());
    let mut urls = Vec::new();
    for page in 0..6 {
        for visit in 0..4 {
            for url in [
                format!("http://a.example/S-{visit}fXyiE5bZS4{visit}/p{page}*x/{{y}}\\"),
                format!("http://a.example/q{page}.html;jsessionid={visit}A0B1C2D3{visit}?a={page}&z"),
                format!("http://www.a.example/q{page}?k=c&utm_source=s{visit}"),
                format!("http://a.example/d/{page}/{}/{visit}", ["", "x/y", "z"][page % 3]),
            ] {
                learner.add(&url, page as u64);
                urls.push(url);
            }
        }
    }
    let rules = learner.finish();
    assert!(rules.rules().len() >= 3, "{rules}");
    let table = rules.to_string();
    let read = Rules::read(table.as_bytes()).unwrap();
    assert_eq!(read.to_string(), table);
    assert_eq!(read.rules(), rules.rules());
    for url in urls {
        assert_eq!(read.normalise(&url), rules.normalise(&url));
    }
}

#[test]
fn invalid_table_of_rules_is_refused_with_its_line_number() {
    let good = "a.example\thttps://a.example/*\tcounter: 1+ decimal\thttps://a.example/1\t9\t3\t2\t0\t0";
    assert!(Rules::read(format!("{COLUMNS}\n{good}\n").as_bytes()).is_ok());
    for (line, wanted) in [
        ("a\tb", "expected 9 columns, found 2"),
        (&good.replace("/*", "/x"), "but the template \"https://a.example/x\" has 0"),
        (&good.replace("/*", "/*-*"), "expected a template"),
        (&good.replace("/*", "/{"), "expected a template"),
        (&good.replace("https://a.example/*", "*"), "expected a template"),
        (&good.replace("counter", "number"), "parts: expected"),
        (&good.replace("\t9\t", "\tx\t"), "pages: expected a number, found \"x\""),
        (&good.replace("\t9\t3\t", "\t3\t9\t"), "forms <= pages"),
    ] {
        let error = Rules::read(format!("{COLUMNS}\n{line}\n").as_bytes()).unwrap_err();
        assert!(error.line == 2 && error.why.contains(wanted), "{line}: {error}");
    }
    assert!(
        Rules::read(b"host\ttemplate\n").unwrap_err().to_string().starts_with("line 1: expected the columns")
    );
    assert!(Rules::read(&[COLUMNS.as_bytes(), b"\n\xff\n"].concat()).unwrap_err().why.contains("not UTF-8"));
}
