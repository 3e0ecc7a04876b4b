// Writes and reads records with kafkajs. The line protocol is that of drivers.py: a JSON object per line, the request
// first, keys and values in base64.
//
// kafkajs reads in consumer groups only; its cluster, fetch and batch modules below that are what reads here.
'use strict'

const readline = require('node:readline')
const { Kafka, logLevel } = require('kafkajs')
const Cluster = require('kafkajs/src/cluster')
const Batch = require('kafkajs/src/consumer/batch')
const { createLogger, LEVELS } = require('kafkajs/src/loggers')
const LoggerConsole = require('kafkajs/src/loggers/console')
const socketFactory = require('kafkajs/src/network/socketFactory')
const codings = require('./codings')

const PATIENCE_MS = 45_000
const PARTITION_BYTES = 1024 * 1024
const EARLIEST = -2

const bytes = text => (text === null ? null : Buffer.from(text, 'base64'))
const base64 = buffer => (buffer === null ? null : buffer.toString('base64'))

function message(line, partition) {
  const headers = {}
  for (const [name, value] of line.headers) {
    const known = headers[name] ?? []
    headers[name] = [...known, bytes(value)]
  }
  const timestamp = line.timestamp_ms === null ? undefined : String(line.timestamp_ms)
  return { partition, key: bytes(line.key), value: bytes(line.value), headers, timestamp }
}

async function produce(request, lines) {
  const kafka = new Kafka({ brokers: [request.bootstrap], logLevel: logLevel.ERROR })
  const producer = kafka.producer({ idempotent: request.idempotent, createPartitioner: () => ({ message }) => message.partition })
  await producer.connect()
  const messages = lines.map(line => message(line, request.partition))
  const share = request.many_requests ? 5 : messages.length
  const receipts = []
  for (let start = 0; start < messages.length; start += share) {
    const part = messages.slice(start, start + share)
    const [answer] = await producer.send({
      topic: request.topic,
      messages: part,
      acks: request.acks,
      compression: codings.TYPES[request.codec],
    })
    part.forEach((_, index) => receipts.push(receipt(request, answer, index)))
  }
  await producer.disconnect()
  return receipts
}

function receipt(request, answer, index) {
  if (request.acks === 0) {
    return {}
  }
  const stamped = answer.logAppendTime !== '-1'
  return { offset: Number(answer.baseOffset) + index, timestamp_ms: stamped ? Number(answer.logAppendTime) : null }
}

async function consume(request, print) {
  const cluster = new Cluster({
    brokers: [request.bootstrap],
    logger: createLogger({ level: LEVELS.ERROR, logCreator: LoggerConsole }),
    socketFactory: socketFactory(),
    clientId: 'driver',
    connectionTimeout: 5_000,
    metadataMaxAge: 300_000,
    retry: {},
  })
  await cluster.connect()
  await cluster.addTargetTopic(request.topic)
  const [start] = await cluster.fetchTopicsOffset([
    {
      topic: request.topic,
      fromTimestamp: EARLIEST,
      partitions: Object.keys(request.counts).map(partition => ({ partition: Number(partition) })),
    },
  ])
  for (const { partition, offset } of start.partitions) {
    await consumePartition(cluster, request.topic, partition, offset, request.counts[partition], print)
  }
  await cluster.disconnect()
}

async function consumePartition(cluster, topic, partition, start, count, print) {
  const [leader] = Object.keys(cluster.findLeaderForPartitions(topic, [partition]))
  const broker = await cluster.findBroker({ nodeId: leader })
  const deadline = Date.now() + PATIENCE_MS
  let position = start
  for (let seen = 0; seen < count && Date.now() < deadline; ) {
    const asked = { partition, fetchOffset: position, maxBytes: PARTITION_BYTES, currentLeaderEpoch: -1 }
    const answer = await broker.fetch({
      maxWaitTime: 500,
      isolationLevel: 1,
      topics: [{ topic, partitions: [asked] }],
    })
    const batch = new Batch(topic, position, answer.responses[0].partitions[0])
    batch.messages.forEach(found => print(lineOf(partition, found)))
    seen += batch.messages.length
    if (!batch.isEmpty()) {
      position = String(Number(batch.lastOffset()) + 1)
    }
  }
}

function lineOf(partition, found) {
  const headers = Object.entries(found.headers).flatMap(([name, values]) =>
    [values].flat().map(value => [name, base64(value)])
  )
  return {
    partition,
    offset: Number(found.offset),
    timestamp_ms: Number(found.timestamp),
    timestamp_type: found.batchContext.timestampType === 1 ? 'append' : 'create',
    key: base64(found.key),
    value: base64(found.value),
    headers,
  }
}

async function main(command) {
  await codings.install()
  const lines = []
  for await (const line of readline.createInterface({ input: process.stdin })) {
    lines.push(JSON.parse(line))
  }
  const [request, ...records] = lines
  const print = object => process.stdout.write(JSON.stringify(object) + '\n')
  if (command === 'produce') {
    const receipts = await produce(request, records)
    receipts.forEach(print)
  } else {
    await consume(request, print)
  }
}

main(process.argv[2]).catch(failure => {
  console.error(failure)
  process.exitCode = 1
})
