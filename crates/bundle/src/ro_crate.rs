//! Writes `ro-crate-metadata.json` (RO-Crate 1.2, profile Process Run Crate 0.5). The file
//! describes each other file, who is responsible for the crawl, and the run that turned the
//! configuration into the files.

use serde_json::{Map, Value, json};

use crate::bundle_folder::BundledFile;
use crate::crawl_summary::{CrawlSummary, meaning};
use crate::readme::README;

pub(crate) const RO_CRATE: &str = "ro-crate-metadata.json";
/// The URL of the JSON-LD context, which RO-Crate 1.2 requires in the metadata.
const CONTEXT_URL: &str = "https://w3id.org/ro/crate/1.2/context";
pub(crate) const CONTEXT: &str = "ro-crate-context.json";
/// The document at [`CONTEXT_URL`] (CC0). Each bundle contains it, so that the metadata can be read
/// without a network.
pub(crate) const CONTEXT_DOCUMENT: &str = include_str!("ro-crate-1.2-context.json");
const CONFIG: &str = "crawl.toml";
const PROFILE: &str = "https://w3id.org/ro/wfrun/process/0.5";
const LICENSE: &str = "#license";
const OPERATOR: &str = "#operator";
const INSTITUTION: &str = "#institution";
const CONTACT: &str = "#contact";
const PROGRAM: &str = "#program";
const RUN: &str = "#crawl";

/// Returns the text of `ro-crate-metadata.json`, which describes all other files.
pub(crate) fn ro_crate(facts: &CrawlSummary, files: &[BundledFile]) -> String {
    let operator = &facts.report.crawl.operator;
    let parts: Vec<Value> = files.iter().map(|file| reference(&file.path)).collect();
    let made = files.iter().filter(|file| file.path != CONFIG);
    let made: Vec<Value> = made.map(|file| reference(&file.path)).collect();
    let agent = agent(facts);
    let mut root = entity("./", "Dataset", &facts.title());
    root.insert("conformsTo".into(), reference(PROFILE));
    root.insert("description".into(), json!(facts.summary()));
    root.insert("datePublished".into(), json!(facts.day()));
    root.insert("license".into(), reference(LICENSE));
    root.insert("hasPart".into(), json!(parts));
    root.insert("mentions".into(), reference(RUN));
    let mut run = entity(RUN, "CreateAction", &format!("Run of {}", facts.program));
    run.insert("description".into(), json!(facts.summary()));
    run.insert("instrument".into(), reference(PROGRAM));
    run.insert("object".into(), reference(CONFIG));
    run.insert("result".into(), json!(made));
    run.insert("startTime".into(), json!(offset_time(&facts.begun())));
    run.insert("endTime".into(), json!(offset_time(&facts.ended())));
    run.insert(
        "actionStatus".into(),
        json!("http://schema.org/CompletedActionStatus"),
    );
    let mut graph = vec![
        json!({
            "@id": RO_CRATE, "@type": "CreativeWork", "about": reference("./"),
            "conformsTo": reference("https://w3id.org/ro/crate/1.2"),
        }),
        json!({
            "@id": PROFILE, "@type": ["CreativeWork", "Profile"], "name": "Process Run Crate",
            "version": "0.5",
        }),
        json!({
            "@id": LICENSE, "@type": "CreativeWork", "name": "No license is stated",
            "description": "The pages in the archive are the works of their authors. Whoever \
                publishes this crawl decides how its records may be used.",
        }),
        json!({
            "@id": PROGRAM, "@type": "SoftwareApplication", "name": "crawl",
            "description": "A polite web crawler with robots exclusion built in.",
            "version": facts.report.crawl.version.as_deref().unwrap_or("unknown"),
            // RO-Crate requires a URL here. The program has none, so refer to the README.
            "url": reference(README),
        }),
    ];
    if let Some((id, entities)) = agent {
        root.insert("author".into(), reference(id));
        if operator.institution.is_some() {
            root.insert("publisher".into(), reference(INSTITUTION));
        }
        run.insert("agent".into(), reference(id));
        graph.extend(entities);
    }
    graph.insert(1, Value::Object(root));
    graph.push(Value::Object(run));
    graph.extend(files.iter().map(described));
    let crate_ = json!({"@context": CONTEXT_URL, "@graph": graph});
    format!("{crate_:#}\n")
}

fn entity(id: &str, kind: &str, name: &str) -> Map<String, Value> {
    let fields = [("@id", id), ("@type", kind), ("name", name)];
    let fields = fields.map(|(key, value)| (key.to_owned(), json!(value)));
    fields.into_iter().collect()
}

/// Replaces the `Z` of a UTC time by a numeric offset, because Process Run Crate does not accept
/// `Z`.
fn offset_time(moment: &str) -> String {
    format!("{}+00:00", moment.trim_end_matches('Z'))
}

fn reference(id: &str) -> Value {
    json!({ "@id": id })
}

/// Returns the person or institution that is responsible for the crawl, with the configured
/// details.
fn agent(facts: &CrawlSummary) -> Option<(&'static str, Vec<Value>)> {
    let operator = &facts.report.crawl.operator;
    let (id, kind) = match (&operator.name, &operator.institution, &operator.contact) {
        (Some(_), ..) => (OPERATOR, "Person"),
        (None, Some(_), _) => (INSTITUTION, "Organization"),
        (None, None, Some(_)) => (OPERATOR, "Person"),
        (None, None, None) => return None,
    };
    let mut entities = Vec::new();
    let mut agent = entity(id, kind, facts.author().unwrap_or_default());
    if let Some(contact) = &operator.contact {
        agent.insert("contactPoint".into(), reference(CONTACT));
        let mut point = entity(CONTACT, "ContactPoint", "Crawl contact");
        point.insert("contactType".into(), json!("crawl operator"));
        let key = if contact.contains("://") {
            "url"
        } else {
            "email"
        };
        point.insert(key.into(), json!(contact));
        entities.push(Value::Object(point));
    }
    if let (OPERATOR, Some(institution)) = (id, &operator.institution) {
        agent.insert("affiliation".into(), reference(INSTITUTION));
        entities.push(Value::Object(entity(
            INSTITUTION,
            "Organization",
            institution,
        )));
    }
    entities.insert(0, Value::Object(agent));
    Some((id, entities))
}

fn described(file: &BundledFile) -> Value {
    let meaning = meaning(&file.path);
    json!({
        "@id": file.path, "@type": "File", "name": file.path, "description": meaning.what,
        "encodingFormat": meaning.media_type, "contentSize": file.bytes.to_string(),
        "sha256": file.sha256,
    })
}
