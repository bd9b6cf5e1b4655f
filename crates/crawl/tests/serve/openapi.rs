//! Compares responses with `/api/openapi.json`.

use serde_json::{Value, json};

use crate::indexed_crawl_directory::Site;
use crate::server_harness::{Reply, Server};

const ORIGIN: &str = "http://site.example";

struct Api {
    server: Server,
    openapi: Value,
}

impl Api {
    /// Fails unless a response matches the description for its status.
    fn check(&self, method: &str, path: &str, reply: &Reply) {
        let plain = path.split('?').next().unwrap();
        let answers = &self.openapi["paths"][plain][method]["responses"];
        let described = self.resolved(&answers[reply.status.to_string()]);
        assert!(
            described.is_object(),
            "{method} {path}: {} is not described",
            reply.status
        );
        let schema = &described["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {path}: {described}");
        let faults = self.faults(schema, &reply.json(), path);
        assert!(faults.is_empty(), "{faults:#?}\n{}", reply.body);
    }

    fn resolved<'a>(&'a self, value: &'a Value) -> &'a Value {
        match value["$ref"].as_str() {
            Some(name) => self
                .openapi
                .pointer(name.strip_prefix('#').unwrap())
                .expect(name),
            None => value,
        }
    }

    /// Returns the places where a value doesn't match a schema (the subset of JSON Schema 2020-12
    /// in use).
    fn faults(&self, schema: &Value, value: &Value, at: &str) -> Vec<String> {
        let schema = self.resolved(schema);
        let mut faults = Vec::new();
        let kinds = match &schema["type"] {
            Value::Array(kinds) => kinds.clone(),
            Value::Null => Vec::new(),
            kind => vec![kind.clone()],
        };
        if !kinds.is_empty() && !kinds.iter().any(|kind| is(kind, value)) {
            faults.push(format!("{at} is no {}: {value}", schema["type"]));
        }
        if schema.get("const").is_some_and(|only| only != value) {
            faults.push(format!("{at} is not {}", schema["const"]));
        }
        if schema["enum"]
            .as_array()
            .is_some_and(|known| !known.contains(value))
        {
            faults.push(format!("{at} is none of {}", schema["enum"]));
        }
        if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
            && number < least
        {
            faults.push(format!("{at} is under {least}"));
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            let of_item = match schema["prefixItems"].get(index) {
                Some(schema) => schema,
                None => &schema["items"],
            };
            faults.extend(self.faults(of_item, item, &format!("{at}[{index}]")));
        }
        if let Some(object) = value.as_object() {
            faults.extend(self.object_faults(schema, object, at));
        }
        faults
    }

    fn object_faults(
        &self,
        schema: &Value,
        object: &serde_json::Map<String, Value>,
        at: &str,
    ) -> Vec<String> {
        let mut faults = Vec::new();
        for name in schema["required"].as_array().into_iter().flatten() {
            if !object.contains_key(name.as_str().unwrap()) {
                faults.push(format!("{at} lacks {name}"));
            }
        }
        for (name, value) in object {
            match schema["properties"].get(name) {
                Some(property) => {
                    faults.extend(self.faults(property, value, &format!("{at}.{name}")));
                }
                None if schema["additionalProperties"] == false => {
                    faults.push(format!("{at}.{name} is not described"));
                }
                None => {}
            }
        }
        faults
    }
}

fn is(kind: &Value, value: &Value) -> bool {
    match kind.as_str().unwrap() {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "null" => value.is_null(),
        other => panic!("unknown type {other}"),
    }
}

fn api(site: &Site) -> Api {
    let server = Server::start(site.path(), &["--rate", "1000"]);
    let openapi = server.get("/api/openapi.json").json();
    Api { server, openapi }
}

#[test]
fn answers_are_as_they_are_described() {
    let site = Site::new(ORIGIN);
    let api = api(&site);
    for path in [
        "/api/search?q=robots",
        "/api/search?q=lantern&limit=3&offset=3",
        "/api/search?q=lantenr",
        "/api/search?q=lantern&facets=true&language=en",
        "/api/search?q=nothingatall",
        "/api/search",
        "/api/page?url=http://site.example/rules",
        "/api/page?url=http://site.example/unknown",
        "/api/page",
        "/api/stats",
        "/api/crawl",
        "/api/openapi.json",
    ] {
        api.check("get", path, &api.server.get(path));
    }
    let paths = api.openapi["paths"].as_object().unwrap();
    for path in paths
        .iter()
        .filter(|(_, item)| item.get("post").is_some())
        .map(|(path, _)| path)
    {
        for (fields, body) in [
            (&[][..], "{}"),
            (&[][..], "{\"unknown\":1}"),
            (&[("origin", "http://evil.example")][..], "{}"),
        ] {
            api.check("post", path, &api.server.post(path, fields, body));
        }
    }
}

#[test]
fn the_description_refers_to_nothing_that_is_missing() {
    let site = Site::new(ORIGIN);
    let api = api(&site);
    assert_eq!(api.openapi["openapi"], "3.1.0");
    let mut names = Vec::new();
    references(&api.openapi, &mut names);
    assert!(names.len() > 30);
    for name in names {
        assert!(
            api.openapi
                .pointer(name.strip_prefix('#').unwrap())
                .is_some(),
            "{name}"
        );
    }
    let schemas = &api.openapi["components"]["schemas"];
    let phases = &schemas["State"]["properties"]["phase"]["enum"];
    assert_eq!(*phases, json!(crawl_engine::CrawlPhase::ALL));
    let moment = json!({"running": true, "state": {"phase": "none"}});
    let faults = api.faults(&schemas["Moment"], &moment, "moment");
    assert!(
        faults.len() > 5,
        "the check finds what does not fit: {faults:?}"
    );
}

fn references(value: &Value, names: &mut Vec<String>) {
    match value {
        Value::Object(object) => {
            names.extend(
                object
                    .get("$ref")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
            object.values().for_each(|value| references(value, names));
        }
        Value::Array(items) => items.iter().for_each(|value| references(value, names)),
        _ => {}
    }
}
