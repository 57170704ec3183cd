//! `twindex plan`: its lists, the figures of the paper, and that the planned index equals the one that is built.

use std::fs;

use crate::support::{Bench, Random, has_fields, says};
use serde_json::Value;

fn designs(report: &Value) -> &Vec<Value> {
    report["designs"].as_array().unwrap()
}

fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or_else(|| panic!("a number: {value}"))
}

/// Returns the line of a design and its codecs.
fn line<'a>(report: &'a Value, name: &str, codecs: &str) -> &'a Value {
    let found = designs(report).iter().find(|line| line["name"] == name && line["codecs"] == codecs);
    found.unwrap_or_else(|| panic!("no {name} {codecs} in {report}"))
}

#[test]
fn plan_report_has_its_fields_and_marks_the_selected_design() {
    let bench = Bench::new();
    let report = bench.json("plan --documents 10M --within 3");
    has_fields(
        &report,
        &[
            ("documents", "count"),
            ("within", "count"),
            ("segments", "count"),
            ("times_of", "text"),
            ("kernel", "text"),
            ("auto", "text"),
        ],
    );
    for line in designs(&report) {
        has_fields(
            line,
            &[
                ("name", "text"),
                ("codecs", "text"),
                ("tables", "count"),
                ("bytes_per_fingerprint", "number"),
                ("bytes", "count"),
                ("probes", "count"),
                ("entries", "number"),
                ("candidates", "number"),
                ("ns_per_query", "number"),
            ],
        );
    }
    for word in ["auto", "small", "fast"] {
        let marked: Vec<String> = designs(&report)
            .iter()
            .filter(|line| line["chosen_by"].as_array().unwrap().contains(&word.into()))
            .map(|line| format!("{} {}", line["name"].as_str().unwrap(), line["codecs"].as_str().unwrap()))
            .collect();
        assert_eq!(marked, [report[word].as_str().unwrap()], "{word}");
    }
    let times: Vec<f64> = designs(&report).iter().map(|line| number(&line["ns_per_query"])).collect();
    assert!(times.is_sorted(), "{times:?}");
    let by_bytes = bench.json("plan --documents 10M --sort bytes");
    assert!(designs(&by_bytes).iter().map(|line| number(&line["bytes"])).is_sorted());
    assert_eq!(designs(&by_bytes).len(), designs(&report).len());
    let all = bench.json("plan --documents 10M --all");
    assert!(designs(&all).len() > designs(&report).len());

    let text = bench.ok("plan --documents 10M");
    says(&text, &["10,000,000 documents, within 3", "<- auto", "<- small", "--design auto"]);
    let machine = report["times_of"].as_str().unwrap();
    says(&text, &[&format!("times: {machine}; this process uses {}", report["kernel"].as_str().unwrap())]);
    let scalar = bench.command("plan --documents 10M").env("TWINDEX_KERNEL", "scalar").output().unwrap();
    says(&String::from_utf8(scalar.stdout).unwrap(), &["this process uses scalar"]);
    says(&text, &["Choose auto, which is what `build` takes: ", "80.0 MB for documents"]);
    // The expected recall of 20 bands of 6 minima at 0.8 is 1 - (1 - 0.8^6)^20.
    let text = bench.ok("plan --threshold 0.8");
    let (bands, rows) = {
        let head = text.lines().next().unwrap().split(' ').collect::<Vec<_>>();
        (head[2].parse::<i32>().unwrap(), head[5].parse::<i32>().unwrap())
    };
    let finds = 100.0 * (1.0 - (1.0 - 0.8_f64.powi(rows)).powi(bands));
    let idle = 100.0 * (1.0 - (1.0 - 0.4_f64.powi(rows)).powi(bands));
    let words = format!(
        "Choose `build --near 0.8` if that is the lowest resemblance you will ask for: it finds {finds:.2} %"
    );
    says(&text, &[&words, &format!("Of pairs at 0.40, {idle:.2} %")]);
}

#[test]
fn plan_for_2_to_the_34_documents_equals_the_published_figures() {
    let bench = Bench::new();
    let report = bench.json("plan --documents 2^34 --within 3");
    assert_eq!(report["segments"], 16);
    let paper = report["paper"].as_array().unwrap();
    let twenty = paper.iter().find(|paper| paper["design"] == "choose-6-3").unwrap();
    assert_eq!((&twenty["tables"], &twenty["probes"]), (&20.into(), &20.into()));
    let prefixes: Vec<(u64, f64)> = twenty["prefixes"]
        .as_array()
        .unwrap()
        .iter()
        .map(|prefix| (prefix["bits"].as_u64().unwrap(), number(&prefix["candidates"])))
        .collect();
    assert_eq!(prefixes, [(31, 8.0), (32, 4.0), (33, 2.0)]);
    assert_eq!(
        (&report["expansion"]["at_distance"], &report["expansion"]["probes"]),
        (&41_664.into(), &43_745.into())
    );
    // A query probes every segment.
    let ten = bench.json("plan --documents 2^34 --design choose-5-2 --codec planes");
    assert_eq!(line(&ten, "choose-5-2", "planes")["probes"], 160);

    let text = bench.ok("plan --documents 8e9");
    says(
        &text,
        &["choose-6-3: 20 raw tables, 1.3 TB", "8 segments", "41,664 at distance 3, 43,745 within 3"],
    );
    let text = bench.ok("plan --documents 2^34");
    says(&text, &["8 at p = 31, 4 at p = 32, 2 at p = 33"]);
}

#[test]
fn design_and_codec_can_be_requested() {
    let bench = Bench::new();
    let report = bench.json("plan --documents 50M --design blocks-2 --codec compact+3");
    assert_eq!(designs(&report).len(), 1);
    let two = line(&report, "blocks-2", "compact+3");
    assert_eq!((&two["tables"], &two["probes"], &two["exact"]), (&2.into(), &46.into(), &true.into()));
    let small = bench.json("plan --documents 50M --design small");
    assert_eq!(designs(&small).len(), 1);
    assert_eq!(designs(&small)[0]["chosen_by"][0], "small");

    let free = bench.json("plan --documents 50M --design prefix-24");
    let recall: Vec<f64> = free["designs"][0]["recall"].as_array().unwrap().iter().map(number).collect();
    assert_eq!((free["designs"][0]["exact"].as_bool(), recall.len(), recall[0]), (Some(false), 4, 1.0));
    assert!((recall[1] - 40.0 / 64.0).abs() < 1e-12, "{recall:?}");
    says(&bench.ok("plan --documents 50M --design prefix-24"), &["not exact", "1.000 0.625"]);
}

#[test]
fn memory_and_medium_change_the_predicted_time_and_the_advice() {
    let bench = Bench::new();
    let time = |options: &str| {
        let report =
            bench.json(&format!("plan --documents 50M --design blocks-4 --codec planes+3 {options}"));
        let line = line(&report, "blocks-4", "planes+3");
        (number(&line["ns_per_query"]), number(&line["cold_pages"]), line["fits"].as_bool().unwrap())
    };
    let (memory, ssd, disk) =
        (time(""), time("--medium ssd --memory 64M"), time("--medium disk --memory 64M"));
    assert_eq!((memory.1, memory.2, time("--medium disk --memory 2G")), (0.0, true, memory));
    assert!(ssd.1 > 4.0 && (ssd.1 - disk.1).abs() < 1e-9 && !ssd.2, "{ssd:?} {disk:?}");
    assert!(memory.0 * 4.0 < ssd.0 && ssd.0 * 100.0 < disk.0, "{memory:?} {ssd:?} {disk:?}");
    says(&bench.ok("plan --documents 50M --memory 400M"), &["do not fit into 419.4 MB", "beyond the memory"]);
    says(&bench.ok("plan --documents 8G --memory 1G"), &["No exact design fits", "machines"]);
}

#[test]
fn plan_lists_designs_for_every_size_and_radius() {
    let bench = Bench::new();
    for documents in ["1", "1000", "4097", "1e6", "2^30", "8e9", "2^50"] {
        for within in [0, 1, 4, 10] {
            let report = bench.json(&format!("plan --documents {documents} --within {within}"));
            let [auto, small] = ["auto", "small"].map(|word| report[word].as_str().unwrap().to_string());
            assert!(auto.starts_with("blocks-") && small.starts_with("blocks-"), "{auto} {small}");
            assert!(designs(&report).iter().all(|line| number(&line["ns_per_query"]) > 0.0));
            bench.ok(&format!("plan --documents {documents} --within {within}"));
        }
    }
}

#[test]
fn plan_reports_the_recall_curve_of_bands() {
    let bench = Bench::new();
    let text = bench.ok("plan --threshold 0.8");
    says(&text, &["20 bands of 6 minima", "0.80   0.9977  recall", "0.50   0.2702  false positives"]);
    let report = bench.json("plan --threshold 0.8 --documents 1M");
    assert_eq!((&report["bands"]["bands"], &report["bands"]["rows"]), (&20.into(), &6.into()));
    assert_eq!(bench.json("plan --threshold 0.77")["bands"]["points"].as_array().unwrap().len(), 11);
    // More minima separate near pairs from others more sharply.
    let of_more = bench.json("plan --threshold 0.8 --minima 512");
    let [few, many] = [&report, &of_more].map(|report| {
        [0.5, 0.8].map(|at| {
            let points = report["bands"]["points"].as_array().unwrap().iter();
            let mut at = points.filter(|point| point["resemblance"] == at);
            number(&at.next().unwrap()["recall"])
        })
    });
    assert!(many[0] < few[0] / 3.0 && many[1] > 0.99, "{many:?} {few:?}");
}

#[test]
fn measured_plan_differs_in_times_alone() {
    let bench = Bench::new();
    let of = |options: &str| {
        let mut report = bench.json(&format!("plan --documents 10M --all {options}"));
        let lines = report["designs"].as_array_mut().unwrap();
        let mut times: Vec<(String, f64)> = Vec::new();
        for line in lines.iter_mut() {
            let nanos = line.as_object_mut().unwrap().remove("ns_per_query").unwrap();
            times.push((line["name"].to_string() + &line["codecs"].to_string(), number(&nanos)));
        }
        lines.sort_by_key(ToString::to_string);
        times.sort_by(|a, b| a.0.cmp(&b.0));
        let machine = report.as_object_mut().unwrap().remove("times_of").unwrap().to_string();
        (report, times, machine)
    };
    let ((report, times, machine), (again, measured, this)) = (of(""), of("--measure"));
    assert_eq!(report, again);
    assert!(!machine.contains("measured") && this.contains("this machine, measured"), "{this}");
    // On any machine, each part of the time is scaled by a factor of its own.
    let factors = times.iter().zip(&measured).map(|(a, b)| b.1 / a.1);
    assert!(factors.clone().all(|factor| factor > 0.001 && factor < 1000.0), "{factors:?}");
    says(&bench.misused("plan --threshold 0.8 --measure"), &["--documents"]);
}

#[test]
fn plan_of_long_fingerprints_says_whether_queries_go_by_parts() {
    let bench = Bench::new();
    let report = bench.json("plan --documents 30M --bits 256 --within 31");
    assert_eq!(report["parts"], 11);
    assert!(report["queries"].as_array().unwrap().iter().all(|line| line["by_parts"] == true));
    says(
        &bench.ok("plan --documents 30M --bits 256 --within 31"),
        &["11 parts", "512 queries together", "by parts"],
    );
    let small = bench.json("plan --documents 10000 --bits 128 --within 20");
    assert_eq!((&small["parts"], &small["queries"][0]["by_parts"]), (&0.into(), &false.into()));
    says(&bench.ok("plan --documents 10000 --bits 128 --within 20"), &["no parts", "by a scan"]);
}

#[test]
fn invalid_plans_are_refused() {
    let bench = Bench::new();
    let message = bench.refused("plan --documents 1M --within 4 --design choose-5-2");
    says(&message, &["within 4", "choose-5-2", "up to 3"]);
    for usage in [
        "plan",
        "plan --documents many",
        "plan --documents 0",
        "plan --documents 2^51",
        "plan --documents 1M --within 11",
        "plan --documents 1M --design blocks-17",
        "plan --documents 1M --codec zip",
        "plan --threshold 0.8 --design blocks-4",
        "plan --threshold 1.5",
        "plan --threshold 0.8 --minima 119",
        "plan --documents 1M --minima 512",
        "plan --documents 1M --bits 64 --within 3",
        "plan --documents 1M --bits 256",
        "plan --documents 1M --bits 256 --within 257",
        "plan --documents 1M --bits 256 --within 31 --measure",
    ] {
        bench.command(usage).assert().code(2);
    }
}

#[test]
fn built_index_has_the_planned_design_and_size() {
    let bench = Bench::new();
    let mut random = Random(4);
    let raw: Vec<u8> = (0..200_000).flat_map(|_| random.next().to_le_bytes()).collect();
    fs::write(bench.path("in.u64"), raw).unwrap();
    bench.ok("build i.twx --fingerprints in.u64 -q");
    let stats = bench.json("stats i.twx");
    let plan = bench.json("plan --documents 200000 --design auto");
    assert_eq!(stats["design"], plan["auto"]);
    let planned = number(&plan["designs"][0]["bytes_per_fingerprint"]);
    let built = ["table", "filter table"]
        .iter()
        .map(|kind| stats["bytes"][*kind].as_f64().unwrap_or(0.0))
        .sum::<f64>();
    assert!(
        (built / 200_000.0 / planned - 1.0).abs() < 0.02,
        "{built} bytes built, {planned} each planned: {stats}"
    );
}
