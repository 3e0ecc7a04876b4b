// A consumer of a group with kafkajs: BOOTSTRAP GROUP TOPIC STRATEGY. What it tells is that of member.py. kafkajs knows
// round robin only.
'use strict'

const { Kafka, logLevel } = require('kafkajs')

const tell = what => process.stdout.write(JSON.stringify(what) + '\n')

async function main([bootstrap, groupId, topic]) {
  const kafka = new Kafka({ brokers: [bootstrap], logLevel: logLevel.NOTHING, retry: { initialRetryTime: 50, retries: 50 } })
  const consumer = kafka.consumer({
    groupId,
    sessionTimeout: 3000,
    rebalanceTimeout: 10000,
    heartbeatInterval: 500,
    metadataMaxAge: 1000,
    maxWaitTimeInMs: 200,
  })
  consumer.on(consumer.events.GROUP_JOIN, ({ payload }) => {
    tell({ assigned: (payload.memberAssignment[topic] ?? []).sort((a, b) => a - b) })
  })
  process.on('SIGTERM', async () => {
    await consumer.disconnect()
    process.exit(0)
  })
  await consumer.connect()
  await consumer.subscribe({ topics: [topic], fromBeginning: true })
  await consumer.run({
    eachBatch: async ({ batch, resolveOffset, commitOffsetsIfNecessary, heartbeat }) => {
      tell({ read: batch.messages.map(each => [batch.partition, Number(each.offset), each.value.toString()]) })
      resolveOffset(batch.lastOffset())
      await commitOffsetsIfNecessary()
      await heartbeat()
    },
  })
}

main(process.argv.slice(2)).catch(failure => {
  console.error(failure)
  process.exitCode = 1
})
