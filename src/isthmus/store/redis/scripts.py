"""Lua scripts that Redis runs: each is one step that nothing comes between.

A script that stores something does so first and whole, so that a server without memory refuses it
before anything has changed. Every time in them is the server's own.
"""

from hashlib import sha1

import msgspec


class RedisScript(msgspec.Struct, frozen=True):
    """A script, by its text and by the name under which Redis keeps it.

    Attributes:
        text: in Lua.
        sha: the SHA-1 of the text, which is how Redis names it.
    """

    text: str
    sha: str


def _make_script(text: str) -> RedisScript:
    return RedisScript(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


# An entry is its version in 16 digits, and its value. Keys: the entry, all names in order, names by
# the time of their end (ms), the last version. Arguments: name, value, ttl (ms, or nothing), the
# version that must be there (or nothing).
# The version is the time in microseconds, or one more than the last: it rises also after what was
# deleted, expired or lost, and after a clock that was set back.
WRITE_ENTRY = _make_script("""
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
if ARGV[4] ~= '' then
  local there = redis.call('GETRANGE', KEYS[1], 0, 15)
  if there == '' then there = '0000000000000000' end
  if there ~= ARGV[4] then return false end
end
local last = tonumber(redis.call('GET', KEYS[4]) or '0') or 0
if last >= now and last < 8e15 then now = last + 1 end
local version = string.format('%016.0f', now)
redis.call('SET', KEYS[4], version)
local ms = time[1] * 1000 + math.floor(time[2] / 1000)
if ARGV[3] == '' then
  redis.call('SET', KEYS[1], version .. ARGV[2])
  redis.call('ZREM', KEYS[3], ARGV[1])
else
  redis.call('SET', KEYS[1], version .. ARGV[2], 'PX', ARGV[3])
  redis.call('ZADD', KEYS[3], ms + ARGV[3], ARGV[1])
end
redis.call('ZADD', KEYS[2], 0, ARGV[1])
local over = redis.call('ZRANGEBYSCORE', KEYS[3], '-inf', ms - 1000, 'LIMIT', 0, 8)
if #over > 0 then
  redis.call('ZREM', KEYS[2], unpack(over))
  redis.call('ZREM', KEYS[3], unpack(over))
end
return version
""")

# Keys: the entry, all names, names by their end. Arguments: name, the version that must be there
# (or nothing).
DELETE_ENTRY = _make_script("""
if ARGV[2] ~= '' and redis.call('GETRANGE', KEYS[1], 0, 15) ~= ARGV[2] then return 0 end
redis.call('ZREM', KEYS[2], ARGV[1])
redis.call('ZREM', KEYS[3], ARGV[1])
return redis.call('DEL', KEYS[1])
""")

# Keys: all names. Arguments: what the key of an entry begins with, the first and the last name, how
# many entries, the longest of them (bytes), how many bytes in all.
# The answer: whether there may be more, then each name and its entry.
SCAN_ENTRIES = _make_script("""
local found, from, bytes = {0}, ARGV[2], 0
local limit, most = tonumber(ARGV[4]), tonumber(ARGV[6])
while true do
  local names = redis.call('ZRANGEBYLEX', KEYS[1], from, ARGV[3], 'LIMIT', 0, limit)
  for _, name in ipairs(names) do
    local entry = redis.pcall('GETRANGE', ARGV[1] .. name, 0, ARGV[5])
    if entry == '' then
      redis.call('ZREM', KEYS[1], name)
    elseif type(entry) == 'string' then
      found[#found + 1] = name
      found[#found + 1] = entry
      bytes = bytes + #entry
      if #found > 2 * limit then return found end
      if bytes > most then
        found[1] = 1
        return found
      end
    end
  end
  if #names < limit then return found end
  from = '(' .. names[#names]
end
""")

# Keys: the stream, its last place. Arguments: the first place, the most entries, the most bytes, how
# long it is kept (ms), whether it may be there already, the values.
# Each entry has its value and the bytes of all values up to it, so that the bytes of what is kept
# follow from the first and the last. The last place outlives the entries, so that a writer who was
# taken for dead is refused then, too. The answer: the last place, where there was one as late; else 0.
WRITE_STREAM = _make_script("""
local place, count = tonumber(ARGV[1]), #ARGV - 5
local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
local last, total = tonumber(redis.call('GET', KEYS[2]) or '0') or 0, 0
if newest then
  last = math.max(last, tonumber(string.match(newest[1], '%d+$')))
  total = tonumber(newest[2][4])
end
if place <= last then
  if ARGV[5] == '1' and last == place + count - 1 then
    local there = redis.call('XRANGE', KEYS[1], '0-' .. ARGV[1], '+')
    local same = #there == count
    for i, entry in ipairs(there) do same = same and entry[2][2] == ARGV[5 + i] end
    if same then return 0 end
  end
  return last
end
local newly = string.format('%.0f', place + count - 1)
redis.call('SET', KEYS[2], newly, 'PX', 2 * ARGV[4] + 60000)
if newest and place > last + 1 then
  redis.call('XTRIM', KEYS[1], 'MAXLEN', 0)
  total = 0
end
for i = 1, count do
  total = total + #ARGV[5 + i]
  redis.call('XADD', KEYS[1], 'MAXLEN', ARGV[2], string.format('0-%.0f', place + i - 1),
    'v', ARGV[5 + i], 't', string.format('%.0f', total))
end
local most = tonumber(ARGV[3])
if total > most then
  while true do
    local oldest = redis.call('XRANGE', KEYS[1], '-', '+', 'COUNT', 1)[1]
    local kept = total - oldest[2][4] + #oldest[2][2]
    if kept <= most or oldest[1] == '0-' .. newly then break end
    redis.call('XDEL', KEYS[1], oldest[1])
  end
end
redis.call('PEXPIRE', KEYS[1], ARGV[4])
return 0
""")

# Keys: the stream, its last place. Arguments: the place after which, how many, how many bytes.
# The answer: nothing where some of that is gone; else the values, which follow each other.
READ_STREAM = _make_script("""
local place, most = ARGV[1] + 1, tonumber(ARGV[3])
local entries = redis.call('XRANGE', KEYS[1], string.format('0-%.0f', place), '+', 'COUNT', ARGV[2])
local found, bytes = {}, 0
if #entries == 0 then
  local newest = redis.call('XREVRANGE', KEYS[1], '+', '-', 'COUNT', 1)[1]
  local last = newest and newest[1] or '0-' .. (redis.call('GET', KEYS[2]) or '')
  if last == '0-' .. ARGV[1] then return found end
  return false
end
if entries[1][1] ~= string.format('0-%.0f', place) then return false end
for i, entry in ipairs(entries) do
  bytes = bytes + #entry[2][2]
  if bytes > most and i > 1 then break end
  found[i] = entry[2][2]
end
return found
""")

# Keys: the moment (microseconds) at which all is as good as new. Arguments: the cost and the burst,
# in microseconds. The answer: how long to wait, in microseconds.
TAKE_FROM_METER = _make_script("""
local time = redis.call('TIME')
local now = time[1] * 1000000 + time[2]
local burst = tonumber(ARGV[2])
local full = tonumber(redis.call('GET', KEYS[1]) or '0') or 0
if full ~= full then full = now end
full = math.max(math.min(full, now + burst + 86400e6), now) + ARGV[1]
local wait = full - now - burst
if wait > 0.5 then return string.format('%.0f', math.ceil(wait)) end
redis.call('SET', KEYS[1], string.format('%.3f', full), 'PX', math.ceil((full - now) / 1000) + 1)
return '0'
""")

SCRIPTS = (
    WRITE_ENTRY,
    DELETE_ENTRY,
    SCAN_ENTRIES,
    WRITE_STREAM,
    READ_STREAM,
    TAKE_FROM_METER,
)
