/** Spans as OTLP's JSON has them. All values of a kind have the same keys, so that an encoder learns one shape for each. */

import type { Attributes, HrTime, Link } from '@opentelemetry/api'
import type { ReadableSpan, TimedEvent } from '@opentelemetry/sdk-trace-node'

/** The `resourceSpans` of a request: spans by what made them. */
export function groupsOf(spans: readonly ReadableSpan[]): object[] {
  const groups = new Map<ReadableSpan['resource'], Map<string, ReadableSpan[]>>()
  for (const span of spans) {
    const { name, version = '', schemaUrl = '' } = span.instrumentationScope
    const scope = `${name}@${version}:${schemaUrl}`
    const scopes = groups.get(span.resource) ?? new Map<string, ReadableSpan[]>()
    if (scopes.size === 0) groups.set(span.resource, scopes)
    const list = scopes.get(scope)
    if (list === undefined) scopes.set(scope, [span])
    else list.push(span)
  }
  return [...groups].map(([{ attributes, schemaUrl }, scopes]) => ({
    resource: { attributes: attributesOf(attributes), droppedAttributesCount: 0, schemaUrl },
    scopeSpans: [...scopes.values()].map((list) => scopeOf(list)),
    schemaUrl,
  }))
}

function scopeOf(list: readonly ReadableSpan[]): object {
  const { name, version, schemaUrl } = list[0]?.instrumentationScope ?? {}
  return { scope: { name, version }, spans: list.map(spanOf), schemaUrl }
}

function spanOf(span: ReadableSpan): object {
  const context = span.spanContext()
  const { name, kind, status, parentSpanContext, droppedAttributesCount, droppedEventsCount, droppedLinksCount } = span
  return {
    traceId: context.traceId,
    spanId: context.spanId,
    parentSpanId: parentSpanContext?.spanId,
    traceState: context.traceState?.serialize(),
    name,
    kind: kind + 1,
    startTimeUnixNano: nanosecondsOf(span.startTime),
    endTimeUnixNano: nanosecondsOf(span.endTime),
    attributes: attributesOf(span.attributes),
    droppedAttributesCount,
    events: span.events.map(eventOf),
    droppedEventsCount,
    status: { code: status.code, message: status.message },
    links: span.links.map(linkOf),
    droppedLinksCount,
    flags: flagsOf(context.traceFlags, parentSpanContext?.isRemote),
  }
}

function eventOf({ attributes = {}, name, time, droppedAttributesCount = 0 }: TimedEvent): object {
  return { attributes: attributesOf(attributes), name, timeUnixNano: nanosecondsOf(time), droppedAttributesCount }
}

function linkOf({ attributes = {}, context, droppedAttributesCount = 0 }: Link): object {
  const { spanId, traceId, traceState, traceFlags, isRemote } = context
  const list = attributesOf(attributes)
  const flags = flagsOf(traceFlags, isRemote)
  return { attributes: list, spanId, traceId, traceState: traceState?.serialize(), droppedAttributesCount, flags }
}

function flagsOf(traceFlags: number, isRemote: boolean | undefined): number {
  return (traceFlags & 0xff) | 0x100 | (isRemote === true ? 0x200 : 0)
}

/** As text, which needs no BigInt. */
function nanosecondsOf([seconds, nanoseconds]: HrTime): string {
  return `${seconds}${String(nanoseconds).padStart(9, '0')}`
}

function attributesOf(attributes: Attributes): object[] {
  return Object.keys(attributes).map((key) => ({ key, value: valueOf(attributes[key]) }))
}

/** Of one shape for primitives: what is undefined leaves no trace in JSON. */
function valueOf(value: unknown): object {
  switch (typeof value) {
    case 'string':
      return { stringValue: value, intValue: undefined, doubleValue: undefined, boolValue: undefined }
    case 'number':
      return Number.isInteger(value)
        ? { stringValue: undefined, intValue: value, doubleValue: undefined, boolValue: undefined }
        : { stringValue: undefined, intValue: undefined, doubleValue: value, boolValue: undefined }
    case 'boolean':
      return { stringValue: undefined, intValue: undefined, doubleValue: undefined, boolValue: value }
    default:
      return composedOf(value)
  }
}

function composedOf(value: unknown): object {
  if (Array.isArray(value)) return { arrayValue: { values: value.map(valueOf) } }
  if (value instanceof Uint8Array) return { bytesValue: Buffer.from(value).toString('base64') }
  if (typeof value !== 'object' || value === null) return {}
  return { kvlistValue: { values: Object.entries(value).map(([key, item]) => ({ key, value: valueOf(item) })) } }
}
